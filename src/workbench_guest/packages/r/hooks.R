# What the sandbox's `library`, `require` and `install.packages` do before R's own. Masked for the code of programs, not
# for that of packages: a namespace finds R's own. `requireNamespace` is a probe and stays as it is.

folder <- file.path(Sys.getenv("WORKBENCH_PACKAGES_FOLDER", "/mnt/packages"), "r", "library")
asker <- file.path(dirname(dirname(Sys.getenv("R_PROFILE"))), "ask.py")
base_packages <- c("base", "compiler", "datasets", "graphics", "grDevices", "grid", "methods", "parallel", "splines",
                   "stats", "stats4", "tcltk", "tools", "utils")
refused <- new.env(parent = emptyenv())

# What is installed later than a program begins is found by it nevertheless; last, as R's own comes first.
use_folder <- function() {
  if (dir.exists(folder) && !folder %in% .libPaths()) .libPaths(c(.libPaths(), folder))
}

is_there <- function(name) {
  use_folder()
  nzchar(system.file(package = name))
}

# Empty if it is there now; otherwise why it is not, or NA if nobody says so.
provide <- function(names, kind, guarded = FALSE) {
  python <- Sys.getenv("WORKBENCH_PYTHON", "python3")
  words <- shQuote(c("-I", "-S", asker, "r", kind, if (guarded) "1" else "0", names))
  said <- suppressWarnings(tryCatch(
    system2(python, words, stdout = TRUE, stderr = "", stdin = "/dev/null", timeout = 300),
    error = function(problem) c("failed", "")
  ))
  use_folder()
  if (length(said) > 0 && said[[1]] == "ok") return("")
  if (length(said) > 1 && nzchar(said[[2]])) said[[2]] else NA_character_
}

# Whether the program has its own answer to the package being absent.
is_guarded <- function() {
  called <- vapply(sys.calls(), function(call) if (is.name(call[[1]])) as.character(call[[1]]) else "", "")
  any(called %in% c("try", "tryCatch"))
}

# Why a package is not there; empty if it is, or if it is nothing to ask for. Once for a name.
missing_because <- function(name) {
  if (!grepl("^[A-Za-z][A-Za-z0-9.]*[A-Za-z0-9]$", name) || name %in% base_packages || is_there(name)) return("")
  if (!exists(name, envir = refused, inherits = FALSE)) {
    why <- provide(name, "modules", is_guarded())
    if (!is.na(why) && !nzchar(why)) return("")
    assign(name, if (is.na(why)) "" else why, envir = refused)
  }
  get(name, envir = refused)
}

# The package of a call of `library` or `require`, by the rules of those: empty if there is none, or a place of its own.
wanted <- function(call, definition, frame) {
  given <- tryCatch(match.call(definition, call), error = function(problem) NULL)
  if (is.null(given) || is.null(given$package) || !is.null(given$lib.loc) || !is.null(given$help)) return("")
  by_value <- !is.null(given$character.only) && isTRUE(tryCatch(eval(given$character.only, frame), error = function(e) FALSE))
  name <- if (by_value) tryCatch(eval(given$package, frame), error = function(e) "") else as.character(given$package)
  if (is.character(name) && length(name) == 1 && !is.na(name)) name else ""
}

masks <- new.env(parent = environment())

masks$library <- function(...) {
  call <- sys.call()
  frame <- parent.frame()
  name <- wanted(call, base::library, frame)
  why <- missing_because(name)
  call[[1]] <- quote(library)
  if (nzchar(why)) {
    problem <- packageNotFoundError(name, .libPaths(), call)
    problem$message <- paste0(conditionMessage(problem), "\n[sandbox] ", why)
    stop(problem)
  }
  # By its own name, so that messages of R's are as ever.
  eval(call, list(library = base::library), frame)
}

masks$require <- function(...) {
  call <- sys.call()
  frame <- parent.frame()
  why <- missing_because(wanted(call, base::require, frame))
  call[[1]] <- quote(require)
  if (nzchar(why)) warning("[sandbox] ", why, call. = FALSE)
  eval(call, list(require = base::require), frame)
}

masks$install.packages <- function(pkgs, ...) {
  if (missing(pkgs) || !is.character(pkgs)) stop("install.packages needs names of packages here")
  pkgs <- setdiff(pkgs[!vapply(pkgs, is_there, TRUE)], base_packages)
  if (length(pkgs) == 0) return(invisible(NULL))
  why <- provide(pkgs, "requirements")
  # As R's own: whoever installs goes on, and finds out by `library`.
  if (is.na(why)) why <- "the workbench does not answer"
  if (nzchar(why)) warning("[sandbox] ", why, call. = FALSE)
  invisible(NULL)
}

environment(masks$library) <- environment(masks$require) <- environment(masks$install.packages) <- environment()
use_folder()
