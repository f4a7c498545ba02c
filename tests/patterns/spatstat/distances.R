# spatstat's F and J on rasters, its inhomogeneous F, G and J, and K and the pair correlation by translation in a polygon.
# Writes distances.csv and raster_star.csv beside itself; needs points.csv, which figures.R made.
#   Rscript tests/patterns/spatstat/distances.R
suppressMessages({library(spatstat.data); library(spatstat.geom); library(spatstat.explore)})
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
digits <- function(x) sprintf("%.17g", x)
star <- owin(poly = list(list(x = c(0, 4, 4, 2, 0), y = c(0, 0, 3, 2, 3)), list(x = c(1, 1, 2, 2), y = c(1, 1.6, 1.6, 1))))
points <- read.csv(file.path(here, "points.csv"))
starry <- with(subset(points, pattern == "star"), ppp(x, y, window = star))

functions <- NULL
keep <- function(case, f, columns, nx = 0, ny = 0) {
  at <- unique(round(seq(2, nrow(f), length.out = 25)))
  step <- f$r[2] - f$r[1]
  f <- as.data.frame(f)[at, ]
  for (column in columns)
    functions <<- rbind(functions, data.frame(case = case, column = column, step = digits(max(f$r) / (max(at) - 1)), index = at - 1,
                                              value = digits(f[[column]]), nx = nx, ny = ny))
}
# spatstat's distances on a raster are those to points that a neighbouring pixel found, and a few are too large: `wrong`
# counts them. On the first raster none is; the second is fine, and on it some are. Neither has an r equal to a distance.
# Jest hands its eps on to where Fest does not read it: only npixel sets the raster of both.
for (name in c("pines", "redwood", "star")) {
  X <- switch(name, pines = swedishpines, redwood = redwoodfull, star = starry)
  for (how in c("exact", "fine")) {
    across <- if (how == "fine") 997 else switch(name, pines = 34, redwood = 16, star = 42)
    down <- switch(name, pines = across + 1, redwood = across, star = round(.74 * across))
    spatstat.options(npixel = c(across, down))
    w <- as.mask(Window(X))
    e <- exactdt(ppp(X$x, X$y, window = w, check = FALSE))
    g <- raster.xy(w, drop = TRUE)
    wrong <- sum(abs(e$d[w$m] - nncross(ppp(g$x, g$y, window = Frame(X)), X)$dist) > 1e-9)
    cat(name, how, rev(w$dim), "wrong:", wrong, "\n")
    stopifnot(how == "fine" || wrong == 0)
    J <- Jest(X, correction = c("km", "rs"), checkspacing = FALSE)
    keep(paste(name, "J", how), J, c("km", "rs"), w$dim[2], w$dim[1])
    keep(paste(name, "F", how), Fest(X, r = J$r, correction = c("km", "rs"), checkspacing = FALSE), c("km", "rs"), w$dim[2], w$dim[1])
    if (how == "exact" && name == "star")  # distances to a polygon's border are raster ones too
      write.csv(data.frame(d = digits(e$d[w$m]), b = digits(bdist.pixels(w, style = "matrix")[w$m])),
                file.path(here, "raster_star.csv"), row.names = FALSE, quote = FALSE)
  }
}
spatstat.options(npixel = 128)
# an intensity that varies; spatstat takes any r on its grid of squared distances from r = rmax k/(nr - 1)
lambda <- function(x, y) exp(-5 + 0.01 * x)
X <- swedishpines
r <- seq(0, 12.43, length.out = 65)
w <- as.mask(Window(X), dimyx = c(40, 37))
keep("pines Ginhom", Ginhom(X, lambda(X$x, X$y), lmin = exp(-5.1), r = r), "bord")
keep("pines Finhom", Finhom(X, lambda(X$x, X$y), lmin = exp(-5.1), r = r, dimyx = c(40, 37)), "bord", 37, 40)
keep("pines Jinhom", Jinhom(X, lambda(X$x, X$y), lmin = exp(-5.1), r = r, dimyx = c(40, 37)), "bord", 37, 40)
# translation weights of a polygon come from a raster in spatstat: a fine one
spatstat.options(npixel = 1024)
keep("star K", Kest(starry, correction = "translate"), "trans")
keep("star pcf", pcf(starry, correction = "translate"), "trans")
write.csv(functions, file.path(here, "distances.csv"), row.names = FALSE, quote = FALSE)
