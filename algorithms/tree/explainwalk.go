package tree

// work is working memory for explaining a row. The slices are indexed by the depth of a node,
// or by the depth and the point of the tree's quadrature.
type work[K key] struct {
	keys []K
	// states has the states of the features on the path. since has, for each feature, 1 plus
	// the depth at which its current state was set, or 0 if the feature is not on the path. on
	// has the features on the path.
	states []state
	since  []int32
	on     []int32
	// slope is (o-z)/(o·t+z·(1-t)) for the state at a depth. inverse is 1/(o·t+z·(1-t)), and is
	// set only for o = 1.
	slope, inverse []float64
	// down is the product of the factors of the features on the path. up is, for each output,
	// the sum over the leaves below of the leaf's product times its value.
	down, up []float64
	change   []float64
}

// state is the state of a feature on a path: hot is true if o is 1, and share is z.
type state struct {
	hot   bool
	share float64
}

func (x *explained[K]) takeWork() *work[K] {
	select {
	case w := <-x.works:
		return w
	default:
	}
	n, outputs := (x.depth+1)*x.points, 1
	for _, r := range x.trees {
		outputs = max(outputs, r.outputs)
	}
	return &work[K]{
		keys: make([]K, len(x.slots)), states: make([]state, x.depth+1), since: make([]int32, len(x.e.Features)),
		on: make([]int32, 0, x.depth+1), slope: make([]float64, n), inverse: make([]float64, n),
		down: make([]float64, n), up: make([]float64, n*outputs), change: make([]float64, x.points),
	}
}

func (x *explained[K]) giveWork(w *work[K]) {
	select {
	case x.works <- w:
	default:
	}
}

// explain writes the values of the rows from to to−1 to out, or their interactions if pairs is
// true.
func (x *explained[K]) explain(src *source, from, to int, out []float64, pairs bool) {
	w := x.takeWork()
	width := len(x.e.Features) + 1
	size := width
	if pairs {
		size *= width
	}
	for i := from; i < to; i++ {
		x.fill(src, i, w.keys, 1)
		all := out[i*x.e.Outputs*size:][:x.e.Outputs*size]
		clear(all)
		for t := range x.trees {
			tree := walker[K]{
				explained: x, work: w, tree: t, points: x.trees[t].points, outputs: x.trees[t].outputs,
				rule: &x.rules[x.trees[t].points], size: size, width: width, pairs: pairs,
			}
			first := int(x.e.Trees[t].Output)
			tree.out = all[first*size:][:tree.outputs*size]
			for q := range tree.points {
				w.down[q] = tree.rule.weight[q]
			}
			tree.visit(x.tops[t].root, 0)
		}
		for o := range x.e.Outputs {
			x.finish(o, all[o*size:][:size], width, pairs)
		}
	}
	x.giveWork(w)
}

// finish divides the sums for one output by the number of trees, if the ensemble averages, and
// sets the bias. If pairs is true, the lower half of the matrix and the values of the features
// on the diagonal are given, and finish computes the rest.
func (x *explained[K]) finish(o int, all []float64, width int, pairs bool) {
	if x.e.Average && x.weights[o] > 0 {
		for i := range all {
			all[i] /= x.weights[o]
		}
	}
	all[len(all)-1] = x.bias[o]
	if !pairs {
		return
	}
	for i := range width - 1 {
		for j := range i {
			all[j*width+i] = all[i*width+j]
		}
	}
	for i := range width - 1 {
		row := all[i*width:][:width]
		for j, v := range row {
			if j != i {
				row[i] -= v
			}
		}
	}
}

// walker explains one row for one tree.
type walker[K key] struct {
	*explained[K]
	*work[K]
	rule                  *points
	out                   []float64
	tree, points, outputs int
	size, width           int
	pairs                 bool
}

// visit traverses the tree below a link, whose down must be set. It adds to out the
// attributions that come from changes of states below the link, and computes the up of the
// link.
func (w *walker[K]) visit(at int32, depth int) {
	up := w.up[depth*w.points*w.outputs:][:w.points*w.outputs]
	down := w.down[depth*w.points:][:w.points]
	left := w.links[at].left
	if left == at {
		tree := &w.e.Trees[w.tree]
		if w.outputs == 1 && tree.Values == nil {
			v := w.leaves[at]
			for q, d := range down {
				up[q] = d * v
			}
			return
		}
		for o, v := range tree.Values[int(w.numbers[at])*w.outputs:][:w.outputs] {
			v *= tree.Weight
			for q, d := range down {
				up[o*w.points+q] = d * v
			}
		}
		return
	}
	clear(up)
	hot := left + w.turn(w.keys, at)
	f := w.feature(at)
	w.child(f, left, hot == left, depth, down, up)
	w.child(f, left+1, hot != left, depth, down, up)
}

// turn returns 1 if a row goes right at a link, and 0 if it goes left.
func (x *explained[K]) turn(keys []K, at int32) int32 {
	n := &x.links[at]
	if n.slot < 0 {
		return x.look(n.above, keys[^n.slot])
	}
	if keys[n.slot] > n.above {
		return 1
	}
	return 0
}

// child visits a child of a node that splits on feature f, and adds the up of the child to the
// up of the node.
func (w *walker[K]) child(f, at int32, hot bool, depth int, down, up []float64) {
	was, first := state{hot: true, share: 1}, true
	since := w.since[f]
	if since > 0 {
		was, first = w.states[since-1], false
	}
	now := state{hot: was.hot && hot, share: float64(was.share * w.shares[at])}
	if !now.hot && now.share == 0 { // the child adds nothing, whether f is known or not
		return
	}
	w.states[depth] = now
	w.enter(was, now, int(since)-1, depth, w.shares[at], down)
	w.since[f] = int32(depth) + 1
	if first {
		w.on = append(w.on, f)
	}
	w.visit(at, depth+1)
	below := w.up[(depth+1)*w.points*w.outputs:][:w.points*w.outputs]
	for q, v := range below {
		up[q] += v
	}
	if was.hot { // otherwise the slope does not change: -z/(z·(1-t)) does not depend on z
		w.credit(f, int(since)-1, depth, below)
	}
	if first {
		w.on = w.on[:len(w.on)-1]
	}
	w.since[f] = since
}

// enter computes the slope, the inverse and the down of a child, for the new state of the
// feature on which the node splits.
func (w *walker[K]) enter(was, now state, before, depth int, share float64, down []float64) {
	next := w.down[(depth+1)*w.points:][:w.points]
	slope := w.slope[depth*w.points:][:w.points]
	inverse := w.inverse[depth*w.points:][:w.points]
	t, rest := w.rule.t[:w.points], w.rule.rest[:w.points]
	switch {
	case now.hot:
		for q := range next {
			divisor := t[q] + float64(now.share*rest[q])
			inverse[q] = 1 / divisor
			slope[q] = (1 - now.share) * inverse[q]
			next[q] = down[q] * divisor
		}
	case was.hot:
		for q := range next {
			slope[q] = -w.rule.inverse[q]
			next[q] = down[q] * float64(now.share*rest[q])
		}
	default:
		copy(slope, w.slope[before*w.points:][:w.points])
		for q := range next {
			next[q] = down[q] * share
		}
		return
	}
	if before >= 0 {
		for q, v := range w.inverse[before*w.points:][:w.points] {
			next[q] *= v
		}
	}
}

// credit adds to feature f the attribution that comes from its change of state at a child.
// below is the up of the child.
func (w *walker[K]) credit(f int32, before, depth int, below []float64) {
	slope := w.slope[depth*w.points:][:w.points]
	if before >= 0 {
		old := w.slope[before*w.points:][:w.points]
		for q, v := range slope {
			w.change[q] = v - old[q]
		}
		slope = w.change[:w.points]
	}
	if w.pairs {
		w.creditPairs(f, slope, below)
		return
	}
	for o := range w.outputs {
		sum := 0.0
		for q, v := range below[o*w.points:][:w.points] {
			sum += float64(slope[q] * v)
		}
		w.out[o*w.size+int(f)] += sum
	}
}

// creditPairs adds the attribution of credit to the diagonal. It also adds the interaction with
// each other feature on the path to the half of the matrix below the diagonal.
func (w *walker[K]) creditPairs(f int32, slope, below []float64) {
	for o := range w.outputs {
		matrix := w.out[o*w.size:][:w.size]
		for q, v := range below[o*w.points:][:w.points] {
			c := float64(slope[q] * v)
			matrix[int(f)*w.width+int(f)] += c
			for _, other := range w.on {
				if other == f {
					continue
				}
				s := w.slope[(int(w.since[other])-1)*w.points+q]
				matrix[int(max(f, other))*w.width+int(min(f, other))] += float64(float64(c*s) / 2)
			}
		}
	}
}
