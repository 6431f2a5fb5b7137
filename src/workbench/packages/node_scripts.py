"""Packages of npm that are of no use without the scripts that run while they are installed. Those are never run."""

from __future__ import annotations

_BROWSER = ("downloads a browser", "use puppeteer-core or playwright-core with a browser that the image has")
_ADDON = "builds or downloads a part that is not JavaScript"
_BINARY = "downloads a program"

# What the script does, and what serves instead. Packages that bring their binaries along (sharp, esbuild, argon2,
# onnxruntime-node) or do without (core-js) are not in here: they work as they are.
_NEEDED: dict[str, tuple[str, str]] = {
    "puppeteer": _BROWSER,
    "playwright": _BROWSER,
    "playwright-chromium": _BROWSER,
    "playwright-firefox": _BROWSER,
    "playwright-webkit": _BROWSER,
    "phantomjs": _BROWSER,
    "phantomjs-prebuilt": _BROWSER,
    "chromedriver": _BROWSER,
    "geckodriver": _BROWSER,
    "electron": (_BINARY, "there is no screen in a sandbox"),
    "cypress": (_BINARY, "test with mocha or vitest, and jsdom"),
    "node-sass": (_ADDON, "use sass"),
    "sqlite3": (_ADDON, "use sql.js, or sqlite3 of Python"),
    "better-sqlite3": (_ADDON, "use sql.js, or sqlite3 of Python"),
    "canvas": (_ADDON, "use @napi-rs/canvas"),
    "@tensorflow/tfjs-node": (_ADDON, "use @tensorflow/tfjs"),
    "@tensorflow/tfjs-node-gpu": (_ADDON, "use @tensorflow/tfjs"),
    "libxmljs": (_ADDON, "use fast-xml-parser or @xmldom/xmldom"),
    "libxmljs2": (_ADDON, "use fast-xml-parser or @xmldom/xmldom"),
    "grpc": (_ADDON, "use @grpc/grpc-js"),
    "re2": (_ADDON, "use re2js, or regular expressions of the language"),
    "isolated-vm": (_ADDON, "use node:vm, or a process of its own"),
    "fibers": (_ADDON, "use async functions"),
    "nodegit": (_ADDON, "use isomorphic-git, or git as a program"),
    "node-rdkafka": (_ADDON, "use kafkajs"),
    "ffi-napi": (_ADDON, "use koffi"),
    "robotjs": (_ADDON, "there is no screen in a sandbox"),
    "node-expat": (_ADDON, "use fast-xml-parser"),
    "msnodesqlv8": (_ADDON, "use mssql"),
    "ffmpeg-static": (_BINARY, "use ffmpeg of the image"),
    "youtube-dl-exec": (_BINARY, "there is nothing like it here"),
    "mozjpeg": (_BINARY, "use sharp"),
    "pngquant-bin": (_BINARY, "use sharp"),
    "optipng-bin": (_BINARY, "use sharp"),
    "jpegtran-bin": (_BINARY, "use sharp"),
    "gifsicle": (_BINARY, "use sharp"),
    "cwebp-bin": (_BINARY, "use sharp"),
    "ngrok": (_BINARY, "nobody outside can reach a sandbox"),
    "mongodb-memory-server": (_BINARY, "use an array, or sql.js"),
}


def useless_without(name: str) -> str:
    """Why it is, in one sentence with what to do instead; empty if it is of use."""
    if name not in _NEEDED:
        return ""
    does, instead = _NEEDED[name]
    return f"{name} is of no use here: it {does} by a script while it is installed, and those are never run; {instead}"
