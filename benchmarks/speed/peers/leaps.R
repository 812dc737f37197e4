# Best subset of each size up to k by leaps and bounds (package leaps).
# Rscript leaps.R FILE ROWS COLUMNS K: FILE holds the matrix, column by column, and the target, as doubles.
# Prints the seconds of processor time and of the clock, half the residual sum of squares, and the columns from 0.
given <- commandArgs(trailingOnly = TRUE)
n <- as.integer(given[2]); d <- as.integer(given[3]); k <- as.integer(given[4])
values <- readBin(given[1], "double", n * (d + 1))
A <- matrix(values[seq_len(n * d)], n, d, dimnames = list(NULL, seq_len(d) - 1))
y <- values[n * d + seq_len(n)]
began <- proc.time()
found <- suppressWarnings(
  leaps::regsubsets(A, y, nvmax = k, intercept = FALSE, method = "exhaustive", really.big = TRUE)
)
spent <- proc.time() - began
told <- summary(found)
size <- nrow(told$which)
columns <- colnames(told$which)[told$which[size, ]]
cat(spent[["user.self"]] + spent[["sys.self"]], spent[["elapsed"]], format(0.5 * told$rss[size], digits = 17), columns)
