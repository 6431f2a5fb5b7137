# How a value is shown: as R prints it, and where that is a table or a page, as such too.

# The last one is the result. Others are printed where R would have printed them, unless they are more than text.
show_value <- function(value, last) {
  rich <- rich_forms(value)
  if (!last && length(rich) == 0) return(print_value(value))
  tell("keep")
  if (!"text/html" %in% names(rich) || is_table(value)) print_bounded(value)
  text <- sub("\n$", "", tell("release"))
  if (length(rich) == 0 && !nzchar(text)) return(invisible())
  if (nzchar(text)) rich <- c("text/plain" = text, rich)
  # What was drawn before it is seen before it.
  if (last) close_device()
  tell(if (last) "execute_result" else "display_data", rbind(names(rich), rich))
}

# As R does it at its prompt: methods are looked for where the user is.
print_value <- function(value) {
  cell$own <- sys.nframe() + 2 - cell$inside
  place <- new.env(parent = globalenv())
  place$x <- value
  eval(if (isS4(value)) quote(methods::show(x)) else quote(base::print(x)), place)
}

most_rows <- function() getOption("repr.matrix.max.rows", 60)
most_columns <- function() getOption("repr.matrix.max.cols", 20)

is_table <- function(value) is.data.frame(value) || (is.matrix(value) && is.atomic(value) && !isS4(value))

# Tibbles and the like bound themselves.
print_bounded <- function(value) {
  plain <- is_table(value) && (identical(class(value), "data.frame") || !is.object(value))
  if (!plain || (nrow(value) <= most_rows() && ncol(value) <= most_columns())) return(print_value(value))
  rows <- min(nrow(value), most_rows())
  columns <- min(ncol(value), most_columns())
  print_value(value[seq_len(rows), seq_len(columns), drop = FALSE])
  cat(sprintf("[the first %d of %d rows, %d of %d columns]\n", rows, nrow(value), columns, ncol(value)))
}

rich_forms <- function(value) {
  forms <- tryCatch(
    if (is_table(value)) table_forms(value)
    else if (inherits(value, c("htmlwidget", "shiny.tag", "shiny.tag.list", "html"))) page_forms(value),
    error = function(problem) NULL
  )
  if (is.null(forms)) character() else forms
}

table_forms <- function(value) {
  c("text/html" = html_of_table(value), table_data(value))
}

# One column of a table of whatever kind, the first rows of it.
column_of <- function(value, index, rows) {
  if (!is.data.frame(value)) return(as.vector(value[seq_len(rows), index]))
  column <- .subset2(value, index)
  if (is.null(dim(column))) column[seq_len(rows)] else rep(sprintf("<%s>", class(column)[[1]]), rows)
}

column_names <- function(value) {
  found <- if (is.data.frame(value)) names(value) else colnames(value)
  if (is.null(found)) rep("", ncol(value)) else found
}

column_kind <- function(value, index) {
  class(if (is.data.frame(value)) .subset2(value, index) else as.vector(value[0, index]))[[1]]
}

cell_texts <- function(column) {
  if (is.list(column)) return(vapply(column, function(one) substr(paste(format(one), collapse = ", "), 1, 200), ""))
  if (is.factor(column) || is.character(column)) return(as.character(column))
  format(column, trim = TRUE)
}

escaped <- function(texts) {
  texts[is.na(texts)] <- "NA"
  gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", texts, fixed = TRUE), fixed = TRUE), fixed = TRUE)
}

html_of_table <- function(value) {
  rows <- min(nrow(value), most_rows())
  columns <- min(ncol(value), most_columns())
  titles <- escaped(column_names(value)[seq_len(columns)])
  kinds <- vapply(seq_len(columns), function(index) column_kind(value, index), "")
  labels <- if (is.data.frame(value) && .row_names_info(value) <= 0) NULL else rownames(value)
  body <- vapply(seq_len(columns), function(index) escaped(cell_texts(column_of(value, index, rows))), character(rows))
  body <- matrix(body, nrow = rows, ncol = columns)
  body[] <- paste0("<td>", body, "</td>")
  lines <- apply(body, 1, paste, collapse = "")
  if (!is.null(labels)) lines <- paste0("<th scope=\"row\">", escaped(labels[seq_len(rows)]), "</th>", lines)
  corner <- if (is.null(labels)) "" else "<th></th>"
  whole <- rows == nrow(value) && columns == ncol(value)
  shown <- if (whole) "" else sprintf(", the first %d \u00d7 %d are shown", rows, columns)
  head_cells <- function(texts) paste0("<th scope=\"col\">", texts, "</th>", collapse = "")
  paste(c(
    "<table class=\"dataframe\">",
    sprintf("<caption>%s: %d \u00d7 %d%s</caption>", escaped(class(value)[[1]]), nrow(value), ncol(value), shown),
    sprintf("<thead><tr>%s%s</tr>", corner, head_cells(titles)),
    sprintf("<tr>%s%s</tr></thead>", corner, head_cells(paste0("&lt;", escaped(kinds), "&gt;"))),
    "<tbody>", if (rows > 0) paste0("<tr>", lines, "</tr>"), "</tbody>", "</table>"
  ), collapse = "\n")
}

# As rows that programs read; empty if there is nothing to write them with, or if they are much.
table_data <- function(value, most_rows = 1000, most_columns = 200, most_bytes = 1e6) {
  if (!requireNamespace("jsonlite", quietly = TRUE)) return(character())
  rows <- min(nrow(value), most_rows)
  indices <- seq_len(min(ncol(value), most_columns))
  columns <- lapply(indices, function(index) {
    column <- column_of(value, index, rows)
    if (is.numeric(column) && !is.object(column) || is.logical(column)) column else as.character(cell_texts(column))
  })
  heads <- lapply(indices, function(index) {
    list(name = column_names(value)[[index]], dtype = column_kind(value, index))
  })
  names(columns) <- paste0("c", indices)
  body <- as.data.frame(columns, stringsAsFactors = FALSE)
  json <- function(what, ...) jsonlite::toJSON(what, auto_unbox = TRUE, digits = NA, na = "null", ...)
  text <- sprintf("{\"columns\": %s, \"rows\": %s, \"shape\": [%d, %d]}", json(heads),
                  if (rows > 0) json(body, dataframe = "values") else "[]", nrow(value), ncol(value))
  if (nchar(text, "bytes") > most_bytes) character() else c("application/vnd.workbench.table+json" = text)
}

# What a chart of plotly's is drawn from, for who draws it otherwise.
plotly_data <- function(value) {
  built <- jsonlite::fromJSON(plotly::plotly_json(value, jsonedit = FALSE), simplifyVector = FALSE)
  json <- jsonlite::toJSON(built[c("data", "layout")], auto_unbox = TRUE, digits = NA, null = "null")
  c("application/vnd.plotly.v1+json" = as.character(json))
}

# A page that needs nothing beside it: whatever it depends on is put into it.
page_forms <- function(value) {
  name <- sprintf("<%s>", class(value)[[1]])
  chart <- if (inherits(value, "plotly")) tryCatch(plotly_data(value), error = function(problem) NULL)
  if (inherits(value, "htmlwidget")) value <- htmltools::as.tags(value, standalone = TRUE)
  page <- htmltools::renderTags(value)
  needed <- unlist(lapply(page$dependencies, function(one) {
    folder <- if (is.null(one$package)) one$src$file else system.file(one$src$file, package = one$package)
    text_of <- function(names) vapply(file.path(folder, unlist(names)), function(path) {
      paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
    }, "")
    scripts <- if (is.list(one$script) && !is.null(one$script$src)) one$script$src else one$script
    c(if (length(scripts)) paste0("<script>", text_of(scripts), "</script>"),
      if (length(one$stylesheet)) paste0("<style>", text_of(one$stylesheet), "</style>"), one$head)
  }))
  c("text/plain" = name, "text/html" = paste(c(needed, page$head, page$html), collapse = "\n"), chart)
}

# What IRdisplay's functions show.
show_bundle <- function(data, metadata = NULL, ...) {
  data <- data[!vapply(data, is.null, TRUE)]
  texts <- vapply(names(data), function(kind) {
    content <- data[[kind]]
    if (is.character(content)) return(paste(content, collapse = "\n"))
    as.character(jsonlite::toJSON(content, auto_unbox = TRUE))
  }, "")
  tell("display_data", rbind(names(texts), texts))
  invisible()
}

clear_output <- function(wait = TRUE, ...) tell("clear_output", if (isTRUE(wait)) "wait")

# The names of the memory, four texts each: name, type, size, a short word on what it is.
described <- function(names) {
  unlist(lapply(names, function(name) {
    if (bindingIsActive(name, globalenv())) return(c(name, "active binding", "", ""))
    value <- get(name, globalenv())
    # The user's own methods may run here, and fail.
    or_nothing <- function(text) tryCatch(text, error = function(problem) "")
    c(name, class(value)[[1]], or_nothing(size_of(value)), or_nothing(preview_of(value)))
  }))
}

size_of <- function(value) {
  if (!is.null(dim(value))) return(paste(dim(value), collapse = " x "))
  if (is.function(value) || is.environment(value)) return("")
  if (is.character(value) && length(value) == 1) return(sprintf("%d characters", nchar(value, "bytes")))
  sprintf("%d item%s", length(value), if (length(value) == 1) "" else "s")
}

first_ones <- function(values) {
  values <- utils::head(as.vector(values), 8)
  if (is.character(values)) dQuote(substr(values, 1, 80), FALSE) else format(values, trim = TRUE)
}

preview_of <- function(value) {
  text <- if (is.data.frame(value)) paste("columns", paste(utils::head(names(value), 8), collapse = ", "))
  else if (is.function(value)) sub("NULL$", "", paste(deparse(args(value), nlines = 2L), collapse = ""))
  else if (is.environment(value)) "<environment>"
  else if (isS4(value)) sprintf("<%s>", class(value)[[1]])
  else if (is.list(value)) paste("list of", paste(utils::head(names(value), 8), collapse = ", "))
  else paste(first_ones(unclass(value)), collapse = ", ")
  text <- gsub("\n", " ", text, fixed = TRUE)
  if (nchar(text) > 80) paste0(substr(text, 1, 79), "\u2026") else text
}
