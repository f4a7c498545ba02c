# mgcv::gam with bs = "so" on five regions, twelve fits. Run in this directory: Rscript soap.R (spatstat.data for the two real data sets)
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(5)
inside <- function(loops, x, y) in.out(loops, cbind(x, y))
gap <- function(loops, x, y) {  # distance of points from the boundary
  d <- rep(Inf, length(x))
  for (l in loops) { n <- length(l$x); for (i in 1:(n - 1)) {
    ux <- l$x[i + 1] - l$x[i]; uy <- l$y[i + 1] - l$y[i]
    if (ux == 0 && uy == 0) next
    t <- pmin(pmax(((x - l$x[i]) * ux + (y - l$y[i]) * uy) / (ux^2 + uy^2), 0), 1)
    d <- pmin(d, sqrt((x - l$x[i] - t * ux)^2 + (y - l$y[i] - t * uy)^2)) } }
  d
}
closed <- function(x, y) list(x = c(x, x[1]), y = c(y, y[1]))
knots_in <- function(loops, step, away) {
  all <- do.call(rbind, lapply(loops, function(l) cbind(l$x, l$y)))
  g <- expand.grid(x = seq(min(all[, 1]) + step / 2, max(all[, 1]), by = step), y = seq(min(all[, 2]) + step / 2, max(all[, 2]), by = step))
  g <- g[inside(loops, g$x, g$y) & gap(loops, g$x, g$y) > away, ]; list(x = round(g$x, 4), y = round(g$y, 4))
}
draw <- function(loops, n) {  # points inside
  all <- do.call(rbind, lapply(loops, function(l) cbind(l$x, l$y))); out <- NULL
  while (NROW(out) < n) { p <- cbind(runif(n, min(all[, 1]), max(all[, 1])), runif(n, min(all[, 2]), max(all[, 2])))
    p <- round(p, 4); out <- rbind(out, p[inside(loops, p[, 1], p[, 2]) & gap(loops, p[, 1], p[, 2]) > 1e-3, ]) }
  data.frame(x = out[1:n, 1], y = out[1:n, 2])
}
fsb <- fs.boundary(); horseshoe <- list(list(x = round(fsb$x, 5), y = round(fsb$y, 5)))
horse <- draw(horseshoe, 600); horse$f <- fs.test(horse$x, horse$y, b = 1, exclude = FALSE)
horse$z <- round(horse$f + rnorm(nrow(horse), sd = .5), 4); horse$count <- rpois(nrow(horse), exp(horse$f / 3)); horse$f <- NULL
horse$t <- round(runif(nrow(horse)), 4); horse$g <- sample(c("a", "b"), nrow(horse), TRUE)
ring <- list(closed(c(0, 4, 4, 0), c(0, 0, 3, 3)), closed(c(1, 3, 2.6, 1.2), c(1, 1.1, 2, 1.9)))
lake <- draw(ring, 500); f <- with(lake, 2 * atan2(y - 1.5, x - 2) / pi + .3 * x); lake$z <- round(f + rnorm(500, sd = .4), 4); lake$cls <- rbinom(500, 1, plogis(f))
star <- { a <- 2 * pi * (0:39) / 40; r <- 2 + .7 * sin(5 * a); closed(round(r * cos(a), 4), round(r * sin(a), 4)) }
holes <- list(star, closed(c(-.6, -.1, -.1, -.6), c(-.5, -.5, .5, .5)), closed(c(.3, .9, .6), c(-.3, -.2, .6)))
isle <- draw(holes, 400); f <- with(isle, sin(2 * x) * cos(y)); isle$count <- rpois(400, exp(.5 + f)); isle$z <- round(f + rnorm(400, sd = .3), 4)
polygon <- function(w) lapply(w$bdry, function(l) list(x = round(c(rev(l$x), rev(l$x)[1]), 4), y = round(c(rev(l$y), rev(l$y)[1]), 4)))
real <- function(p, loops, case) { d <- data.frame(x = round(p$x, 4), y = round(p$y, 4), cls = as.integer(p$marks == case)); d <- d[inside(loops, d$x, d$y) & gap(loops, d$x, d$y) > 1e-3, ]; d }
humber <- polygon(spatstat.data::humberside$window); leukaemia <- real(spatstat.data::humberside, humber, "case")
urkiola_ <- polygon(spatstat.data::urkiola$window); birch <- real(spatstat.data::urkiola, urkiola_, "birch"); birch <- birch[seq(1, nrow(birch), 2), ]
regions <- list(horseshoe = horseshoe, lake = ring, isle = holes, humber = humber, urkiola = urkiola_)
tables <- list(horseshoe = horse, lake = lake, isle = isle, humber = leukaemia, urkiola = birch)
record <- function(text, region, family, step, away, k, nmax = 200, known = NULL, twice = FALSE) {
  bnd <- regions[[region]]; d <- tables[[region]]; if ("g" %in% names(d)) d$g <- factor(d$g)
  knots <- knots_in(bnd, step, away); if (!is.null(known)) bnd[[1]]$f <- known(bnd[[1]]$x, bnd[[1]]$y)
  xt <- list(bnd = bnd, nmax = nmax)
  fit <- function(...) gam(as.formula(text), family, d, knots = knots, method = "REML", control = control, ...)
  b <- fit(); rows <- unique(as.integer(seq(1, nrow(d), length.out = 250))); p <- predict(b, d[rows, ], se.fit = TRUE)
  apart <- NULL  # how far mgcv's own fit moves when its lattice is twice as fine
  if (twice) { xt <- list(bnd = bnd, nmax = 2 * nmax); apart <- sqrt(mean(((p$fit - predict(fit(), d[rows, ])) / p$se.fit)^2)) }
  cat(sprintf("%-9s %-52s %-9s knots %3d score %.4f edf %.3f%s\n", region, text, family$family, length(knots$x), b$gcv.ubre, sum(b$edf), if (twice) sprintf(", twice as fine: %.4f se", apart) else ""))
  list(region = region, formula = text, family = family$family, knots = lapply(knots, arr), k = arr(k), nmax = nmax,
       known = if (is.null(known)) NULL else arr(round(bnd[[1]]$f, 9)), score = unname(b$gcv.ubre), edf_total = sum(b$edf), sp = arr(unname(b$sp)),
       rows = arr(rows - 1), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)), apart = apart)
}
out <- list(
  record("z ~ s(x, y, bs = \"so\", k = 40, xt = xt)", "horseshoe", gaussian(), .35, .15, 40),
  record("count ~ s(x, y, bs = \"so\", k = 20, xt = xt)", "horseshoe", poisson(), .45, .15, 20, twice = TRUE),
  record("z ~ g + s(x, y, bs = \"so\", k = 15, by = g, xt = xt)", "horseshoe", gaussian(), .5, .15, 15),
  record("z ~ s(x, y, bs = \"so\", k = 15, by = t, xt = xt)", "horseshoe", gaussian(), .5, .15, 15),
  record("z ~ s(x, y, bs = \"so\", xt = xt)", "horseshoe", gaussian(), .4, .15, 10, 200, function(x, y) 0 * x),
  record("z ~ s(x, y, bs = \"so\", xt = xt)", "horseshoe", gaussian(), .4, .15, 10, 200, function(x, y) ifelse(y > 0, x / 2, -x / 2)),
  record("z ~ s(x, y, bs = \"so\", k = 12, xt = xt)", "lake", gaussian(), .5, .2, 12, twice = TRUE),
  record("cls ~ s(x, y, bs = \"so\", k = 10, xt = xt)", "lake", binomial(), .6, .2, 10),
  record("count ~ s(x, y, bs = \"so\", k = 10, xt = xt)", "isle", poisson(), .5, .15, 10),
  record("z ~ s(x, y, bs = \"so\", k = c(16, 6, 6), xt = xt)", "isle", gaussian(), .4, .15, c(16, 6, 6)),
  record("cls ~ s(x, y, bs = \"so\", k = 10, xt = xt)", "humber", binomial(), 80, 25, 10),
  record("cls ~ s(x, y, bs = \"so\", k = 12, xt = xt)", "urkiola", binomial(), 30, 10, 12))
regions <- lapply(regions, function(r) arr(lapply(r, function(l) list(x = arr(l$x), y = arr(l$y)))))
tables <- lapply(tables, function(t) lapply(t, arr))
write_json(list(mgcv = as.character(packageVersion("mgcv")), regions = regions, tables = tables, fits = arr(out)), "soap.json", 8)
