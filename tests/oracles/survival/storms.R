# The tracks of dplyr::storms (NOAA's Atlantic hurricane data base, public domain) from 2008 to 2020, and clogit on rows made of
# them: Rscript storms.R tracks OUT.csv; Rscript storms.R clogit ROWS.csv OUT.csv. The data are not part of the project.
given <- commandArgs(TRUE)
if (given[1] == "tracks") {
  s <- as.data.frame(dplyr::storms)
  s <- s[s$year >= 2008 & s$year <= 2020, ]
  time <- ISOdatetime(s$year, s$month, s$day, s$hour, 0, 0, tz = "UTC")
  out <- data.frame(time = as.numeric(time), lon = s$long, lat = s$lat, storm = paste(s$name, s$year), wind = s$wind)
  write.csv(out[s$hour %% 6 == 0, ], given[2], row.names = FALSE)
} else {
  suppressMessages(library(survival))
  rows <- read.csv(given[2])
  tight <- coxph.control(eps = 1e-12, toler.chol = 1e-14, toler.inf = 1e-6)
  one <- function(name, fit) data.frame(model = name, term = names(coef(fit)),
                                        estimate = sprintf("%.15g", coef(fit)), se = sqrt(diag(vcov(fit))))
  tilted <- clogit(case ~ north + east + strata(stratum), rows, method = "exact", control = tight)
  both <- clogit(case ~ north + east + north:wind + step + log_step + cos_turn + strata(stratum), rows,
                 method = "exact", control = tight)
  write.csv(rbind(one("tilted", tilted), one("integrated", both)), given[3], row.names = FALSE)
}
