package grow

// wideHistogram computes the sums of a feature with a column of two-byte values. number is the
// index of the feature in Layout.Wide; the other parameters are as in blockHistogram. It adds
// to out directly, as intermediate sums of thousands of bins would not stay in the cache.
func (s *State) wideHistogram(j *job, number int, rows []int32, all bool, out []int64, base func(owner int) int) {
	f := &s.data.Layout.Features[s.data.Layout.Wide[number]]
	t, w, column := &j.target, s.width, s.data.Wide[number]
	to := out[base(s.slots.wide[number])+f.Slot*w:][:f.Stored()*w]
	clear(to)
	n := len(rows)
	if all {
		n = s.data.Rows
	}
	for i := range n {
		row := i
		if !all {
			row = int(rows[i])
		}
		g, h := t.histogramPair(int32(row))
		sum := to[int(column[row])*w:][:w]
		sum[0] += g
		sum[1] += h
		if w > 2 {
			sum[2]++
		}
	}
}
