module podium.dev/benchmarks/null

go 1.21
