# R's side of the kernel: one cell, expression by expression. `bridge` is the way to Python, which carries what is said.
# Loaded into an environment of its own, below which is R's base alone: whatever the user calls `c` is the user's.

here <- environment()
cell <- new.env()
NO_INPUT <- "is not available: nobody can type into this session. Put the value into the code instead."

# What Python answers to one of its own words; all that goes there is text.
tell <- function(kind, texts = character()) .Call(bridge, kind, enc2utf8(as.character(texts)))

# What the files beside this one define is known here, too.
start <- function(files) {
  for (file in files) sys.source(file, here, keep.source = FALSE)
  options(device = open_device, jupyter.base_display_func = show_bundle, jupyter.clear_output_func = clear_output,
          browser = "false", pager = show_pages)
  use_own_functions()
  attach_helpers()
  watch_pages()
  tell("version", paste(R.version$major, R.version$minor, sep = "."))
  # How many calls there are between `run_user` and the user's own: counted, as versions of R differ.
  cell$inside <- run_user(quote(base::sys.nframe()))$value - cell$own
  "ok"
}

# R drops folders of packages that are not there when it starts, as the session's is where nobody has the sandbox yet.
find_packages <- function(...) {
  masks <- "workbench:packages"
  if (masks %in% search()) environment(get("library", masks))$use_folder()
  "ok"
}

# How many expressions there are; or why it is no code.
begin <- function(code) {
  cell$expressions <- NULL
  source <- srcfilecopy("cell", strsplit(code, "\n", fixed = TRUE)[[1]], isFile = FALSE)
  cell$expressions <- tryCatch(parse(text = code, srcfile = source, keep.source = TRUE), error = function(problem) {
    cell$problem <- conditionMessage(problem)
    NULL
  })
  if (is.null(cell$expressions)) return(c("error", "ParseError", cell$problem, paste("Error:", cell$problem)))
  c("ok", length(cell$expressions))
}

run_user <- function(expression) {
  cell$own <- sys.nframe()
  withVisible(eval(expression, globalenv()))
}

# Evaluate one of them, and show its value: "ok", or how it ended, with what there is to say.
step <- function(which) {
  index <- as.integer(which)
  cell$calls <- NULL
  tryCatch(
    withRestarts(
      withCallingHandlers(do_step(index), error = function(problem) {
        calls <- sys.calls()
        cell$calls <- users_calls(calls)
      }, warning = without_our_call),
      workbench_quit = function(status) c("quit", status)
    ),
    error = function(problem) failed(problem),
    interrupt = function(problem) "interrupt"
  )
}

do_step <- function(index) {
  if (device_is_open() && !identical(cell$shape, wanted_shape())) close_device()
  seen <- run_user(cell$expressions[[index]])
  try(set_last(seen$value), silent = TRUE)
  refuse_input()
  if (seen$visible) show_value(seen$value, index == length(cell$expressions))
  refuse_input()
  send_pages()
  heed_interrupts()
  "ok"
}

# R looks only now and then whether somebody wants to stop it: a short line would go on.
heed_interrupts <- function() Sys.sleep(0)

refuse_input <- function() if (nzchar(tell("input"))) stop(simpleError(paste("standard input", NO_INPUT)))

set_last <- function(value) assign(".Last.value", value, envir = baseenv())

# Without ours above them, and without the handler that asks, and how R has called it.
users_calls <- function(calls) {
  first <- cell$own + cell$inside
  last <- length(calls) - 1
  if (last > 0 && identical(calls[[last]][[1]], quote(.handleSimpleError))) last <- last - 1
  if (last <= first) list() else calls[seq(first + 1, last)]
}

is_ours <- function(call) identical(call, quote(eval(expression, globalenv())))

# At the top level it is said without a call.
without_our_call <- function(problem) {
  if (!is_ours(conditionCall(problem))) return()
  problem["call"] <- list(NULL)
  warning(problem)
  invokeRestart("muffleWarning")
}

failed <- function(problem) {
  call <- conditionCall(problem)
  if (is_ours(call)) call <- NULL
  said <- conditionMessage(problem)
  head <- if (is.null(call)) paste0("Error: ", said) else paste0("Error in ", shortly(call), ": ", said)
  calls <- vapply(cell$calls, shortly, "")
  # As many as anybody reads of a recursion without end.
  more <- length(calls) - 40
  if (more > 0) calls <- c(calls[1:20], sprintf("... %d more ...", more), utils::tail(calls, 20))
  numbered <- if (length(calls)) c("Traceback:", paste0(seq_along(calls), ". ", calls)) else character()
  c("error", class(problem)[[1]], said, head, numbered)
}

shortly <- function(call) {
  lines <- deparse(call, nlines = 2L)
  paste0(substr(lines[[1]], 1, 300), if (length(lines) > 1) " ...")
}

# After the last expression, however it ended.
finish <- function(...) {
  tryCatch(close_device(), error = function(problem) NULL, interrupt = function(problem) NULL)
  cell$expressions <- NULL
  "ok"
}

# Functions of R's that would wait for somebody, or end the process in the middle of a cell.
use_own_functions <- function() {
  no_input <- NO_INPUT
  replace("readline", function(prompt = "") stop(paste("readline()", no_input), call. = FALSE))
  # Who steps through code types, too; R would go on to step through later cells.
  for (name in c("browser", "debug", "debugonce")) {
    replace(name, eval(bquote(function(...) stop(.(paste0(name, "() ", no_input)), call. = FALSE))))
  }
  leave <- function(save = "default", status = 0, runLast = TRUE) invokeRestart("workbench_quit", as.integer(status))
  replace("quit", leave)
  replace("q", leave)
  their_file <- base::file
  replace("file", function(description = "", ...) {
    if (identical(description, "stdin")) stop(paste("standard input", no_input), call. = FALSE)
    their_file(description, ...)
  })
  # R's own is deaf to an interrupt as long as the command runs, and goes on with the next line afterwards.
  call_system <- function(command, intern, timeout) {
    if (intern || timeout > 0) return(their_system(command, intern, timeout))
    code <- tell("system", command)
    heed_interrupts()
    invisible(as.integer(code))
  }
  their_system <- function(command, intern, timeout) .Internal(system(command, intern, timeout))
  for (name in c("system", "system2")) {
    own <- get(name, baseenv())
    body(own) <- with_calls_replaced(body(own), call_system)
    replace(name, own)
  }
}

with_calls_replaced <- function(code, by) {
  if (!is.call(code)) return(code)
  if (identical(code[[1]], quote(.Internal)) && identical(code[[2]][[1]], quote(system))) {
    return(as.call(c(by, as.list(code[[2]])[-1])))
  }
  for (index in seq_along(code)) {
    if (!identical(code[[index]], quote(expr = ))) code[[index]] <- with_calls_replaced(code[[index]], by)
  }
  code
}

replace <- function(name, by) {
  base <- baseenv()
  unlockBinding(name, base)
  assign(name, by, envir = base)
  lockBinding(name, base)
}

# Whether it is code, and what would go on: for notebooks.
is_complete <- function(code) {
  tryCatch({
    parse(text = code)
    "complete"
  }, error = function(problem) {
    if (grepl("unexpected end of input|INCOMPLETE_STRING", conditionMessage(problem))) "incomplete" else "invalid"
  })
}

# Where the token begins, in characters of the line, then what it could be.
complete <- function(line) {
  utils <- asNamespace("utils")
  utils$.assignLinebuffer(line)
  utils$.assignEnd(nchar(line))
  token <- utils$.guessTokenFromLine()
  utils$.completeToken()
  c(nchar(line) - nchar(token), utils$.retrieveCompletions())
}

# Help pages and the like are text.
show_pages <- function(files, header = "", title = "", delete.file = FALSE) {
  lines <- unlist(lapply(files, readLines, warn = FALSE))
  cat(gsub("_\b", "", lines), sep = "\n")
  if (delete.file) unlink(files)
}
