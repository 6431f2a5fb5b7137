# Every page that is drawn becomes a picture, by cairo, which needs no display. A page is complete when the next one
# begins, or when its device closes: at the end of the cell, or when somebody wants another size.

page_folder <- file.path(tempdir(), "workbench-pages")

wanted_shape <- function() {
  list(
    width = getOption("repr.plot.width", 7), height = getOption("repr.plot.height", 7),
    res = getOption("repr.plot.res", 120), pointsize = getOption("repr.plot.pointsize", 12),
    family = getOption("repr.plot.family", "sans"), bg = getOption("repr.plot.bg", "white"),
    svg = identical(getOption("jupyter.plot_mimetypes"), "image/svg+xml")
  )
}

open_device <- function(...) {
  dir.create(page_folder, showWarnings = FALSE)
  shape <- wanted_shape()
  cell$opened <- (if (is.null(cell$opened)) 0 else cell$opened) + 1
  path <- file.path(page_folder, sprintf("%06d-%%06d.%s", cell$opened, if (shape$svg) "svg" else "png"))
  if (shape$svg) {
    grDevices::svg(path, width = shape$width, height = shape$height, pointsize = shape$pointsize, onefile = FALSE,
                   family = shape$family, bg = shape$bg)
  } else {
    grDevices::png(path, width = shape$width, height = shape$height, units = "in", pointsize = shape$pointsize,
                   bg = shape$bg, res = shape$res, family = shape$family, type = "cairo")
  }
  cell$device <- grDevices::dev.cur()
  cell$path <- path
  cell$shape <- shape
  invisible()
}

# The user may have closed it, and opened another one under the number.
device_is_open <- function() {
  number <- cell$device
  !is.null(number) && number <= length(.Devices) && identical(attr(.Devices[[number]], "filepath"), cell$path)
}

close_device <- function() {
  if (device_is_open()) grDevices::dev.off(cell$device)
  cell$device <- NULL
  send_pages()
}

send_pages <- function() {
  if (is.null(cell$path)) return(invisible())
  pages <- sort(list.files(page_folder, full.names = TRUE))
  if (device_is_open()) pages <- utils::head(pages, -1)
  for (page in pages) tell("page", page)
  invisible()
}

watch_pages <- function() {
  for (hook in c("before.plot.new", "before.grid.newpage", "persp")) setHook(hook, function(...) send_pages())
}
