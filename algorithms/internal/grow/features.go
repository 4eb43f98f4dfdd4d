package grow

// drawFeatures draws the features of a tree and sets j.draws.
func (s *State) drawFeatures(j *job) {
	var draw uint64
	j.draws, draw = treeDraws(s.p.Seed, j.number)
	j.features = s.chooser.take(s.usable, share(s.p.ByTree, len(s.usable)), draw, j.features)
	j.levels = j.levels[:0]
}

// level returns the features that are drawn for a level of a tree.
func (s *State) level(j *job, depth int32) []int32 {
	if s.p.ByLevel == 0 || s.p.ByLevel == 1 {
		return j.features
	}
	for len(j.levels) <= int(depth) {
		d := int32(len(j.levels))
		j.levels = append(j.levels, s.chooser.take(j.features, share(s.p.ByLevel, len(j.features)), j.draws.level(d), nil))
	}
	return j.levels[depth]
}

// featuresOf returns the features by which a node may be split, in ascending order.
func (s *State) featuresOf(j *job, n int32) []int32 {
	v := &j.nodes[n]
	features := s.level(j, v.depth)
	if s.groups != nil {
		s.allowed = s.meeting(j, n, features, s.allowed[:0])
		features = s.allowed
	}
	if k := share(s.p.ByNode, len(features)); k < len(features) {
		s.looked = s.chooser.take(features, k, j.draws.node(v.path), s.looked)
		features = s.looked
	}
	return features
}

// meeting appends to out those elements of features that may be on one path with all features
// on the path to node n.
func (s *State) meeting(j *job, n int32, features, out []int32) []int32 {
	for _, f := range features {
		if s.mayMeet(j, n, f) {
			out = append(out, f)
		}
	}
	return out
}

// mayMeet reports whether some interaction group contains f and all features on the path to
// node n, or f is the only feature on this path.
func (s *State) mayMeet(j *job, n, f int32) bool {
	inGroup := func(member []bool) bool {
		if member != nil && !member[f] {
			return false
		}
		for up := j.nodes[n].parent; up >= 0; up = j.nodes[up].parent {
			g := j.nodes[up].split.feature
			if member == nil && g != f || member != nil && !member[g] {
				return false
			}
		}
		return true
	}
	for _, member := range s.groups {
		if inGroup(member) {
			return true
		}
	}
	return inGroup(nil)
}
