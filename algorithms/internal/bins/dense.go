package bins

// Dense bins n rows of d features without a job. x has the rows, row-major. Dense is meant for
// tests and benchmarks of the growth of trees. The result equals the Data of a job with these
// rows as one shard. It does not refer to x.
func Dense(x []float64, n, d int, o Options) *Data {
	p := &plan{kind: denseRows, dim: d, options: o, vector: -1, labelAt: -1, upperAt: -1, weightAt: -1, groupAt: -1}
	if p.options.MaxBins < 2 || p.options.MaxBins > MaxBins {
		p.options.MaxBins = MaxBins
	}
	parts := []packed{{n: n, d: d, raw: x[:n*d]}}
	f := &finder{plan: p, features: p.list(d, nil), parts: parts, rows: int64(n)}
	f.prepare(shardStats{Rows: int64(n), MaxWeight: 1}, 1)
	f.alone()
	b := newBundler(p, f.features, f.missing, parts, int64(n))
	layout := b.layout()
	facts := &Facts{Declared: d, Rows: int64(n), Weighing: int64(n), Weight: float64(n), Missing: f.missing, ShardRows: []int64{int64(n)}}
	data := &Data{Facts: facts, Layout: &layout, Rows: n, Shards: []Span{{Rows: n}}}
	if err := data.bin(onHeap, p, parts); err != nil {
		panic(err) // with onHeap and dense rows, bin returns no error
	}
	return data
}

// alone runs all steps of a finder in a job with one subtask, where the subtask's own sums are
// the sums over all subtasks.
func (f *finder) alone() {
	search := func() {
		for f.searching() {
			sums := make([]int64, f.probeLength())
			f.probe(sums)
			f.narrow(sums)
		}
	}
	for f.load() {
		f.merge(f.distinct())
		sums := make([]int64, f.countsLength())
		f.counts(sums)
		f.begin(sums)
		search()
		f.divide()
		search()
		f.settle()
		extremes := make([]int64, f.neighboursLength())
		for i := range extremes {
			extremes[i] = -1 << 62
		}
		f.neighbours(extremes)
		f.finish(extremes)
	}
}
