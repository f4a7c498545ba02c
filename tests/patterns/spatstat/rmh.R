# Summaries of patterns simulated by rmh in the unit square, nothing outside it: number of points, close pairs, and K at two
# distances, each with its mean, standard deviation and number of patterns. Writes rmh.csv beside itself.
#   Rscript tests/patterns/spatstat/rmh.R
suppressMessages({library(spatstat.geom); library(spatstat.random); library(spatstat.explore)})
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
# of its steps rmh spends nine in ten on shifts, unless told, and is then far from converged after 40,000
set.seed(31)
W <- owin(c(0, 1), c(0, 1))
models <- list(
  "strauss .2" = list(cif = "strauss", par = list(beta = 200, gamma = .2, r = .05)),
  "strauss .7" = list(cif = "strauss", par = list(beta = 200, gamma = .7, r = .05)),
  "geyer" = list(cif = "geyer", par = list(beta = 60, gamma = 1.5, r = .05, sat = 2)),
  "hardcore" = list(cif = "hardcore", par = list(beta = 150, hc = .04)))
out <- NULL
many <- 400
for (name in names(models)) {
  model <- rmhmodel(c(models[[name]], list(w = W)))
  found <- sapply(1:many, function(k) {
    X <- rmh(model, start = list(n.start = 80), control = list(expand = 1, nrep = 6e4, p = .4), verbose = FALSE)
    K <- Kest(X, r = c(0, .05, .1), correction = "isotropic")$iso
    c(n = npoints(X), close = sum(closepairs(X, .05, what = "ijd")$d <= .05) / 2, K05 = K[2], K10 = K[3])
  })
  out <- rbind(out, data.frame(model = name, summary = rownames(found), mean = rowMeans(found), sd = apply(found, 1, sd), patterns = many))
}
write.csv(format(out, digits = 8), file.path(here, "rmh.csv"), row.names = FALSE, quote = FALSE)
