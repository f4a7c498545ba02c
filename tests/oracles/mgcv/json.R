# A small JSON writer in base R: named lists become objects, vectors of length one scalars unless wrapped in arr().
arr <- function(x) structure(list(x), class = "arr")
number <- function(x, digits) {
  out <- formatC(x, digits = digits, format = "g", width = 1)
  out[is.na(x)] <- "null"
  out[!is.na(x) & is.infinite(x)] <- ifelse(x[!is.na(x) & is.infinite(x)] > 0, "1e999", "-1e999")
  out
}
quoted <- function(x) paste0('"', gsub('"', '\\\\"', x), '"')
json <- function(x, digits = 10) {
  if (inherits(x, "arr")) {
    v <- x[[1]]
    if (is.matrix(v)) return(paste0("[", paste(apply(v, 1, function(r) json(arr(r), digits)), collapse = ",\n"), "]"))
    if (is.list(v)) return(paste0("[", paste(vapply(v, json, "", digits), collapse = ","), "]"))
    items <- if (is.character(v)) quoted(v) else if (is.logical(v)) tolower(as.character(v)) else number(v, digits)
    return(paste0("[", paste(items, collapse = ","), "]"))
  }
  if (is.null(x)) return("null")
  if (is.list(x)) {
    if (length(x) == 0) return("{}")
    return(paste0("{", paste(paste0(quoted(names(x)), ": ", vapply(x, json, "", digits)), collapse = ",\n"), "}"))
  }
  if (is.matrix(x)) return(json(arr(x), digits))
  if (length(x) != 1) return(json(arr(unname(x)), digits))
  if (is.character(x)) quoted(x) else if (is.logical(x)) tolower(as.character(x)) else number(x, digits)
}
write_json <- function(x, path, digits = 10) writeLines(json(x, digits), path)
