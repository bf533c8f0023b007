# Reads the output of benchmarks in rounds and prints, for each benchmark whose name has a part impl=..., its time as a
# multiple of that of the first impl in the same round.

$1 == "pkg:" { package = $2; sub(/.*\//, "", package) }

/^Benchmark/ && match($1, /\/impl=[^\/]*/) && $4 == "ns/op" {
	impl = substr($1, RSTART + 6, RLENGTH - 6)
	row = substr($1, 10, RSTART - 10) substr($1, RSTART + RLENGTH)
	if (row !~ /-[0-9]+$/) {
		sub(/-[0-9]+$/, "", impl)
	}
	sub(/-[0-9]+$/, "", row) # GOMAXPROCS
	row = package "." row
	if (!(row in yardstick)) {
		yardstick[row] = impl
		rows[++rowCount] = row
	}
	if (!((row, impl) in rounds)) {
		impls[row, ++implCount[row]] = impl
	}
	time[row, impl, ++rounds[row, impl]] = $3
}

# insert puts value in its place among the first n of list, which ascend.
function insert(list, n, value) {
	for (; n > 0 && list[n] > value; n--) {
		list[n + 1] = list[n]
	}
	list[n + 1] = value
}

END {
	for (r = 1; r <= rowCount; r++) {
		row = rows[r]
		print row
		for (i = 1; i <= implCount[row]; i++) {
			impl = impls[row, i]
			n = rounds[row, impl]
			for (round = 1; round <= n; round++) {
				base = time[row, yardstick[row], round]
				insert(ratios, round - 1, base > 0 ? time[row, impl, round] / base : 0)
			}
			median = n % 2 ? ratios[(n + 1) / 2] : (ratios[n / 2] + ratios[n / 2 + 1]) / 2
			printf "  %-40s %8.2f  (%.2f to %.2f, %d rounds)\n", impl, median, ratios[1], ratios[n], n
		}
	}
}
