package grow

import (
	"cmp"
	"math"
	"math/big"
	"slices"
)

// try makes s the best split of node v if s is allowed and better than the best split so far.
func (b *builder) try(v *refNode, s refSplit) {
	missing := b.x.features[s.feature].Bins
	s.sums = b.sum(b.coarse, v.rows, func(r int32) bool {
		bin := b.x.bins[r][s.feature]
		if bin == missing {
			return s.missingLeft
		}
		return s.left[bin]
	})
	if s.categorical {
		b.elsewhere(v, &s)
	}
	right := make(exact, len(s.sums))
	for i := range right {
		right[i] = new(big.Int).Sub(v.sums[i], s.sums[i])
	}
	lambda := b.p.Lambda
	if s.categorical && b.x.features[s.feature].Bins > b.oneHot() {
		lambda += b.p.CategoryLambda
	}
	if !b.childOK(s.sums, lambda) || !b.childOK(right, lambda) {
		return
	}
	if b.p.Monotone != nil && !s.categorical {
		wl := b.value(s.sums.float(0)*b.unit[0], s.sums.float(1)*b.unit[1], lambda, v.lo, v.hi)
		wr := b.value(right.float(0)*b.unit[0], right.float(1)*b.unit[1], lambda, v.lo, v.hi)
		if d := float64(b.p.Monotone[b.x.features[s.feature].Number]); d*(wr-wl) < 0 {
			return
		}
	}
	if s.soft == nil {
		s.score = b.score(s.sums, lambda, v.lo, v.hi) + b.score(right, lambda, v.lo, v.hi)
	} else {
		soft := 0.0
		for _, bin := range s.sorted {
			soft += s.soft[bin]
		}
		if s.missingLeft && s.some {
			soft += s.soft[missing]
		}
		unit := b.unit[0]
		s.score = b.scoreOf(float64(soft*unit), s.sums.float(1)*b.unit[1], lambda, v.lo, v.hi) +
			b.scoreOf(float64((v.sums.float(0)-soft)*unit), right.float(1)*b.unit[1], lambda, v.lo, v.hi)
	}
	worth := b.score(v.sums, b.p.Lambda, v.lo, v.hi)
	if gain := s.score - worth; gain < b.p.Gamma || gain <= max(math.Abs(s.score), math.Abs(worth))*math.Ldexp(1, -40) {
		return
	}
	if v.best == nil || s.before(v.best) {
		v.best = &s
	}
}

// elsewhere sends categories that occur in no row of the node to the child with the larger
// weight. It does the same with missing values if no row of the node has a missing value.
func (b *builder) elsewhere(v *refNode, s *refSplit) {
	if 2*b.weightOf(s.sums) <= b.weightOf(v.sums) {
		return
	}
	all := map[int]bool{}
	for bin := range b.x.features[s.feature].Bins + 1 {
		e := b.sum(b.coarse, v.rows, func(r int32) bool { return b.x.bins[r][s.feature] == bin })
		if b.p.MinRows <= 1 {
			e = e[:len(e)-1]
		}
		all[bin] = s.left[bin] || e.isZero()
	}
	missing := b.x.features[s.feature].Bins
	s.missingLeft = s.missingLeft || all[missing]
	s.left = all
}

func (s *refSplit) before(o *refSplit) bool {
	return cmp.Or(-cmp.Compare(s.score, o.score), cmp.Compare(s.feature, o.feature),
		cmp.Compare(s.place, o.place), cmp.Compare(sideOf(s), sideOf(o))) < 0
}

func sideOf(s *refSplit) int {
	if s.missingLeft {
		return 0
	}
	return 1
}

func (b *builder) oneHot() int {
	if b.p.MaxOneHot == 0 {
		return 4
	}
	return b.p.MaxOneHot
}

// search tries all splits of node v by a feature.
func (b *builder) search(v *refNode, feature int) {
	f := &b.x.features[feature]
	sums := map[int]exact{}
	for bin := range f.Bins + 1 {
		e := b.sum(b.coarse, v.rows, func(r int32) bool { return b.x.bins[r][feature] == bin })
		seen := e[:len(e)-1]
		if b.p.MinRows > 1 {
			seen = e
		}
		if !seen.isZero() {
			sums[bin] = e
		}
	}
	_, missing := sums[f.Bins]
	ways := []bool{true}
	switch {
	case missing:
		ways = []bool{true, false}
	case f.Categorical:
		ways = []bool{false}
	}
	upTo := func(bin int) map[int]bool {
		left := map[int]bool{}
		for i := range bin + 1 {
			left[i] = true
		}
		return left
	}
	if f.Categorical {
		b.categories(v, feature, sums, ways)
		return
	}
	if missing {
		b.try(v, refSplit{feature: feature, place: -1, missingLeft: true})
	}
	for place := range max(f.Bins-1, 0) {
		for _, way := range ways {
			b.try(v, refSplit{feature: feature, place: place, missingLeft: way, left: upTo(place)})
		}
	}
}

func (b *builder) categories(v *refNode, feature int, sums map[int]exact, ways []bool) {
	f := &b.x.features[feature]
	var present []int
	for bin := range f.Bins {
		if _, ok := sums[bin]; ok {
			present = append(present, bin)
		}
	}
	if f.Bins <= b.oneHot() {
		for _, bin := range present {
			for _, way := range ways {
				b.try(v, refSplit{feature: feature, place: bin, missingLeft: way, categorical: true, left: map[int]bool{bin: true}})
			}
		}
		return
	}
	var soft map[int]float64
	if b.p.LearnCategories {
		if soft = b.soften(v, f.Bins, sums); soft == nil {
			return
		}
	}
	key := func(bin int) float64 {
		if soft != nil {
			if h := sums[bin].float(1); h > 0 {
				return soft[bin] / h
			}
			return 0
		}
		below := b.weightOf(sums[bin]) + b.p.CategorySmooth
		if below <= 0 {
			return 0
		}
		return sums[bin].float(0) * b.unit[0] / below
	}
	slices.SortFunc(present, func(x, y int) int { return cmp.Or(cmp.Compare(key(x), key(y)), x-y) })
	group := []int(nil)
	for k := range present {
		group = append(group, present[k])
		most := b.p.MaxCategories
		if b.p.RootOfCategories && most > 0 && most*most < 4*f.Bins {
			for (most+1)*(most+1) <= 4*f.Bins {
				most++
			}
		}
		if small := min(k+1, len(present)-k-1); most > 0 && small > most {
			continue
		}
		left := map[int]bool{}
		for _, bin := range present[:k+1] {
			left[bin] = true
		}
		if least := b.p.MinCategoryRows; least > 0 && k+1 < len(present)+len(ways)-1 {
			weight := func(bins []int) (sum float64) {
				for _, bin := range bins {
					sum += b.weightOf(sums[bin])
				}
				return sum
			}
			all := b.weightOf(v.sums)
			share := float64(all*float64(least)) / float64(len(v.rows))
			if weight(group) < share || all-weight(present[:k+1]) < share {
				continue
			}
		}
		group = nil
		for _, way := range ways {
			b.try(v, refSplit{feature: feature, place: k, missingLeft: way, categorical: true, left: left,
				soft: soft, sorted: present[:k+1], some: len(ways) > 1})
		}
	}
}

// drawn returns the features sorted by their draws.
func drawn(features []int32, draw uint64) []int32 {
	out := slices.Clone(features)
	key := func(f int32) uint64 { return mix(draw+golden*uint64(f+1)) >> 24 }
	slices.SortStableFunc(out, func(x, y int32) int { return cmp.Compare(key(x), key(y)) })
	return out
}

func part(features []int32, share float64, draw uint64) []int32 {
	if share == 0 || share == 1 {
		return features
	}
	k := max(int(share*float64(len(features))), min(1, len(features)))
	out := drawn(features, draw)[:k]
	slices.Sort(out)
	return out
}

// look finds the best split of node v, and sets v.open if there is a split.
func (b *builder) look(v *refNode) {
	features := part(b.features, b.p.ByLevel, b.draws.level(int32(v.depth)))
	if b.p.Interaction != nil {
		var path []int
		for n := v; n.parent >= 0; n = b.nodes[n.parent] {
			path = append(path, b.nodes[n.parent].best.feature)
		}
		var allowed []int32
		for _, f := range features {
			meets := !slices.ContainsFunc(path, func(g int) bool { return g != int(f) })
			for _, group := range b.p.Interaction {
				in := func(f int) bool { return slices.Contains(group, b.x.features[f].Number) }
				meets = meets || in(int(f)) && !slices.ContainsFunc(path, func(g int) bool { return !in(g) })
			}
			if meets {
				allowed = append(allowed, f)
			}
		}
		features = allowed
	}
	features = part(features, b.p.ByNode, b.draws.node(v.path))
	for _, f := range features {
		b.search(v, int(f))
	}
	if v.best != nil {
		v.open = true
		v.gain = v.best.score - b.score(v.sums, b.p.Lambda, v.lo, v.hi)
	}
}
