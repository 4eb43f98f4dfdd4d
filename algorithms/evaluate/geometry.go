package evaluate

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// geometryState has the sums over the vectors of each cluster.
type geometryState struct {
	Clusters classes
	Dim      int // 0 before the first row
	Rows     int64
	// Weight, Total and Squares have, for each cluster, the sums over its rows of the weight,
	// of the weight times each feature, and of the weight times the squared length of the
	// vector.
	Weight  []sum
	Total   []sum // Dim sums for each cluster
	Squares []sum

	ids []int32
}

// vectorRows has a method that returns the vector of row i.
type vectorRows interface{ at(i int) []float64 }

// add adds vectors. ids has the numbers of their clusters, and w their weights; if w is nil,
// every row weighs 1.
func (s *geometryState) add(x vectorRows, ids []int32, w []float64) error {
	for i, c := range ids {
		v := x.at(i)
		if s.Dim == 0 {
			s.Dim = len(v)
		}
		if len(v) != s.Dim || len(v) == 0 {
			return &badRow{i, fmt.Errorf("the vector has %d components, those before have %d", len(v), s.Dim)}
		}
		s.grow(int(c) + 1)
		weight := weightOf(w, i)
		s.Weight[c].add(weight)
		total, squares := s.Total[int(c)*s.Dim:], &s.Squares[c]
		for j, a := range v {
			if a == 0 {
				continue
			}
			p := float64(weight * a)
			total[j].add(p)
			squares.addProduct(p, a)
			if weight != 1 {
				if e := productError(weight, a, p); e != 0 {
					total[j].add(e)
					squares.addProduct(e, a)
				}
			}
		}
	}
	s.Rows += int64(len(ids))
	if len(s.Clusters.Texts) > maxLabels {
		return fmt.Errorf("there are more than %d clusters", maxLabels)
	}
	return nil
}

// grow makes room for n clusters.
func (s *geometryState) grow(n int) {
	for len(s.Weight) < n {
		s.Weight, s.Squares = append(s.Weight, sum{}), append(s.Squares, sum{})
		s.Total = append(s.Total, make([]sum, s.Dim)...)
	}
}

func (s *geometryState) merge(o *geometryState) error {
	if o.Dim == 0 {
		return nil
	}
	if s.Dim != 0 && s.Dim != o.Dim {
		return fmt.Errorf("there are vectors of %d components and of %d", min(s.Dim, o.Dim), max(s.Dim, o.Dim))
	}
	s.Dim = o.Dim
	for i, t := range o.Clusters.Texts {
		c := int(s.Clusters.id([]byte(t)))
		s.grow(c + 1)
		if i >= len(o.Weight) {
			continue
		}
		s.Weight[c].merge(&o.Weight[i])
		s.Squares[c].merge(&o.Squares[i])
		for j := range s.Dim {
			s.Total[c*s.Dim+j].merge(&o.Total[i*s.Dim+j])
		}
	}
	s.Rows += o.Rows
	return nil
}

// geometry has the centres of clusters and the mean distances of rows to them. Clusters of
// weight 0 are left out. The remaining clusters are in ascending order of their labels.
type geometry struct {
	names  []string
	place  []int32 // number of a label -> index of the cluster; -1 if the cluster is left out
	dim    int
	rows   int64
	weight []float64
	center [][]float64
	spread []float64 // mean squared distance to the centre
	total  float64   // weight of all rows
	mean   []float64 // mean of all rows
	within float64   // sum of weight times squared distance to the centre
}

// geometry computes the centres from the sums.
func (s *geometryState) geometry(byValue bool) *geometry {
	rank, labels := s.Clusters.ranked(byValue)
	order := make([]int, len(labels))
	for id, place := range rank {
		order[place] = id
	}
	g := &geometry{dim: s.Dim, rows: s.Rows, place: make([]int32, len(labels)), mean: make([]float64, s.Dim)}
	all, total, within := make([]sum, s.Dim), sum{}, sum{}
	for place, id := range order {
		g.place[id] = -1
		if id >= len(s.Weight) || !(s.Weight[id].value() > 0) {
			continue
		}
		g.place[id] = int32(len(g.names))
		w := s.Weight[id].value()
		own := s.Total[id*s.Dim : (id+1)*s.Dim]
		center := make([]float64, s.Dim)
		for j := range own {
			center[j] = own[j].value() / w
			all[j].merge(&own[j])
		}
		wide := s.wide(id, own)
		total.merge(&s.Weight[id])
		within.add(wide)
		g.names, g.weight = append(g.names, labels[place]), append(g.weight, w)
		g.center, g.spread = append(g.center, center), append(g.spread, wide/w)
	}
	g.total, g.within = total.value(), within.value()
	for j := range all {
		g.mean[j] = all[j].value() / g.total
	}
	return g
}

// wide returns the weighted sum of the squared distances of the rows of cluster id to their
// centre. own has the sums of weight times each feature of the cluster.
func (s *geometryState) wide(id int, own []sum) float64 {
	if !s.Squares[id].finite() {
		return math.NaN()
	}
	left, w, square := s.Squares[id].exact(), s.Weight[id].exact(), newExact()
	for j := range own {
		t := own[j].exact()
		square.Mul(t, t)
		left.Sub(left, t.Quo(square, w))
	}
	v, _ := left.Float64()
	return max(v, 0)
}

// distanceState has the sums of the second pass over the rows, in which the centres are known.
type distanceState struct {
	// Silhouette, Distance and Exact have, for each cluster of the geometry, the sums over its
	// rows of the weight times the silhouette, the distance to the centre, and the exact
	// silhouette.
	Silhouette, Distance, Exact []sum

	g        *geometry
	clusters classes
	others   *neighbours
	squared  []float64
	ids      []int32
}

// open prepares the state for the rows.
func (s *distanceState) open(g *geometry, clusters classes, others *neighbours) {
	k := len(g.names)
	s.g, s.clusters, s.others = g, classes{Texts: clusters.Texts}, others
	s.Silhouette, s.Distance, s.Exact = make([]sum, k), make([]sum, k), make([]sum, k)
	s.squared = make([]float64, k)
}

func (s *distanceState) merge(o *distanceState) {
	if s.Silhouette == nil {
		s.Silhouette, s.Distance, s.Exact = o.Silhouette, o.Distance, o.Exact
		return
	}
	for i := range o.Silhouette {
		s.Silhouette[i].merge(&o.Silhouette[i])
		s.Distance[i].merge(&o.Distance[i])
		s.Exact[i].merge(&o.Exact[i])
	}
}

// add adds rows. The mean squared distance of a row x to the rows of a cluster is |x-centre|² +
// spread. If the row itself, of weight w, belongs to the cluster, of weight W, the mean over
// the other rows is W/(W-w) times as large.
func (s *distanceState) add(x vectorRows, ids []int32, w []float64) {
	g := s.g
	for i, id := range ids {
		weight := weightOf(w, i)
		if weight == 0 || len(g.names) == 0 {
			continue
		}
		own, v := int(g.place[id]), x.at(i)
		for c := range g.names {
			s.squared[c] = kernel.SquaredDistance(v, g.center[c])
		}
		s.Distance[own].add(float64(weight * math.Sqrt(s.squared[own])))
		for c := range g.names {
			s.squared[c] += g.spread[c]
		}
		rest := g.weight[own] - weight
		s.squared[own] = float64(s.squared[own] * (g.weight[own] / rest))
		s.Silhouette[own].add(float64(weight * silhouette(s.squared, own, rest)))
		if s.others != nil {
			s.Exact[own].add(float64(weight * silhouette(s.others.distances(v, own, rest), own, rest)))
		}
	}
}

// silhouette returns the silhouette of a row (Rousseeuw, Journal of Computational and Applied
// Mathematics 20, 1987). mean has the row's mean distance to the other rows of each cluster.
// rest is the weight of the other rows of its own cluster; if rest is 0, so is the silhouette.
func silhouette(mean []float64, own int, rest float64) float64 {
	if !(rest > 0) {
		return 0
	}
	a, b := mean[own], math.Inf(1)
	for c, d := range mean {
		if c != own {
			b = min(b, d)
		}
	}
	if top := max(a, b); top > 0 && !math.IsInf(top, 0) {
		return (b - a) / top
	}
	return 0
}

// neighbours has all rows. For the exact silhouette of a row, the row is compared with all of
// them.
type neighbours struct {
	dim    int
	x      []float64 // row-major
	place  []int32
	weight []float64
	sums   []sum
	means  []float64
	total  []float64 // weight of each cluster
}

func newNeighbours(g *geometry) *neighbours {
	return &neighbours{dim: g.dim, sums: make([]sum, len(g.names)), means: make([]float64, len(g.names)), total: g.weight}
}

// take adds rows to the neighbours.
func (n *neighbours) take(g *geometry, x vectorRows, ids []int32, w []float64) {
	for i, id := range ids {
		if weight := weightOf(w, i); weight > 0 {
			n.x = append(n.x, x.at(i)...)
			n.place, n.weight = append(n.place, g.place[id]), append(n.weight, weight)
		}
	}
}

// distances returns the mean distance of a row v to the other rows of each cluster. rest is the
// weight of the other rows in its own cluster. The row need not be excluded from the sum,
// because its distance to itself is 0.
func (n *neighbours) distances(v []float64, own int, rest float64) []float64 {
	clear(n.sums)
	for i, c := range n.place {
		d := math.Sqrt(kernel.SquaredDistance(v, n.x[i*n.dim:(i+1)*n.dim]))
		n.sums[c].add(float64(n.weight[i] * d))
	}
	for c := range n.sums {
		weight := n.total[c]
		if c == own {
			weight = rest
		}
		n.means[c] = n.sums[c].value() / weight
	}
	return n.means
}

// sliceRows are rows in memory.
type sliceRows [][]float64

func (r sliceRows) at(i int) []float64 { return r[i] }
