"""Suites that every implementation of a contract passes; shipped, so that engines made elsewhere can run them."""
