# The helpers, as R has such functions: an answer is a list or a text, and what fails is an error, of class
# `workbench_error`, with `details`: what the other side answered nevertheless.

attach_helpers <- function() {
  off <- if (identical(tolower(trimws(Sys.getenv("WORKBENCH_TOOL_EXECUTION"))), "false")) {
    c("run_composio_tool", "invoke_llm", "web_search")
  }
  offered <- helper_functions[setdiff(names(helper_functions), off)]
  do.call("attach", list(list2env(offered), name = "workbench:helpers", warn.conflicts = FALSE))
}

ask_helper <- function(name, ...) {
  if (!requireNamespace("jsonlite", quietly = TRUE)) stop(paste0(name, "() needs the package jsonlite"), call. = FALSE)
  arguments <- Filter(Negate(is.null), list(...))
  names(arguments) <- if (is.null(names(arguments))) rep("", length(arguments)) else names(arguments)
  plain <- arguments[!nzchar(names(arguments))]
  named <- as_object(arguments[nzchar(names(arguments))])
  request <- jsonlite::toJSON(list(name = name, plain = unname(plain), named = named), auto_unbox = TRUE, digits = NA,
                              null = "null", na = "null", dataframe = "rows", force = TRUE)
  said <- tell("helper", request)
  heed_interrupts()
  answer <- jsonlite::fromJSON(said, simplifyVector = FALSE)
  if (!nzchar(answer$error)) return(answer$result)
  condition <- list(message = answer$error, call = NULL, details = answer$result)
  stop(structure(condition, class = c("workbench_error", "error", "condition")))
}

# An empty list of R's has no kind; what goes to a tool is an object.
as_object <- function(value) if (length(value) == 0) structure(list(), names = character()) else value

helper_functions <- list(
  run_composio_tool = function(tool_slug, arguments = list(), account = NULL, print_schema_for_tool = FALSE) {
    ask_helper("run_composio_tool", tool_slug, as_object(as.list(arguments)), account = account,
               print_schema_for_tool = print_schema_for_tool)
  },
  proxy_execute = function(method, endpoint, toolkit, query_params = NULL, body = NULL, headers = NULL) {
    ask_helper("proxy_execute", method, endpoint, toolkit, query_params = query_params, body = body, headers = headers)
  },
  invoke_llm = function(query, reasoning_effort = NULL) {
    ask_helper("invoke_llm", query, reasoning_effort = reasoning_effort)
  },
  web_search = function(query) ask_helper("web_search", query),
  upload_local_file = function(...) do.call(ask_helper, c("upload_local_file", lapply(list(...), path.expand))),
  smart_file_extract = function(sandbox_file_path) ask_helper("smart_file_extract", sandbox_file_path)
)
