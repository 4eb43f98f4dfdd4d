package evaluate

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/operators"
)

// ClusteringOptions are the options of Clustering. ClusterCol is required, and at least one of
// VectorCol and LabelCol. The zero values of the other fields are their defaults.
type ClusteringOptions struct {
	// ClusterCol names the column of the clusters, of any scalar type.
	ClusterCol string
	// VectorCol names the column of the points. It is needed for the measures of how compact
	// clusters are and how far apart they are.
	VectorCol string
	// LabelCol names a column of true labels, of any scalar type. It is needed for the measures
	// of how well the clusters agree with the labels.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A row of weight 2 counts as two rows, with one exception: the
	// silhouette compares a row with the other rows only, and leaves out the whole weight of
	// the row itself.
	WeightCol string
	// Exact computes ExactSilhouette as well, from the distances of all pairs of rows.
	Exact bool
	// ExactRows is the largest number of rows for which Exact is permitted; 0 means 20,000.
	// With more rows the run fails.
	ExactRows int
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Validate returns what is wrong with the options, without checking that the columns exist.
func (o ClusteringOptions) Validate() error {
	if o.ExactRows < 0 {
		return invalid("ExactRows is %d: want at least 1, or 0 for %d", o.ExactRows, defaultExactRows)
	}
	return nil
}

const defaultExactRows = 20_000

// validateColumns returns what is wrong with the names of the columns.
func (o ClusteringOptions) validateColumns() error {
	switch {
	case o.VectorCol == "" && o.LabelCol == "":
		return invalid("VectorCol and LabelCol are empty: name one of them, or both")
	case o.Exact && o.VectorCol == "":
		return invalid("Exact is set, but there is no VectorCol")
	}
	return o.Validate()
}

func (o ClusteringOptions) checkRows(n int64) error {
	limit := int64(o.ExactRows)
	if limit == 0 {
		limit = defaultExactRows
	}
	if o.Exact && n > limit {
		return fmt.Errorf("the exact silhouette of %d rows takes the distances of all pairs; ExactRows permits %d", n, limit)
	}
	return nil
}

// ClusteringReport has measures of clusters. A measure that is not defined is NaN, and
// Undefined gives the reason. A measure whose column is not named is NaN without a reason.
type ClusteringReport struct {
	Weight float64 `json:"weight"` // the weight of all rows
	// Silhouette is the mean of (b-a)/max(a,b) over the rows. a is the mean squared Euclidean
	// distance of a row to the other rows of its cluster; b is its mean squared distance to the
	// rows of the nearest other cluster. A row that is alone in its cluster counts as 0. The
	// silhouette takes two passes over the rows.
	Silhouette float64 `json:"silhouette"`
	// ExactSilhouette is the silhouette with Euclidean distances that are not squared.
	ExactSilhouette float64 `json:"exact_silhouette"`
	// DaviesBouldin is the mean, over the clusters, of the largest (s+t)/d of the cluster and
	// any other cluster. s and t are the mean distances of the rows of the two clusters to the
	// means of their clusters; d is the distance between the two means. Lower is better. Pairs
	// of clusters with equal means are left out.
	DaviesBouldin float64 `json:"davies_bouldin"`
	// CalinskiHarabasz is the variance between clusters divided by the variance within
	// clusters.
	CalinskiHarabasz float64 `json:"calinski_harabasz"`
	// Within is the sum, over the rows, of the weight times the squared distance to the mean of
	// the row's cluster.
	Within float64 `json:"within"`
	// ARI is the adjusted Rand index of labels and clusters: 1 if they agree, and about 0 if
	// they are independent. NMI is the mutual information of labels and clusters divided by the
	// mean of their entropies.
	ARI float64 `json:"ari"`
	NMI float64 `json:"nmi"`
	// Purity is the fraction of rows with the most frequent label of their cluster.
	Purity float64 `json:"purity"`
	// Homogeneity is the fraction of the entropy of the labels that the clusters explain.
	// Completeness is the fraction of the entropy of the clusters that the labels explain. Each
	// is 1 where the entropy that it divides by is 0. VMeasure is the harmonic mean of both.
	Homogeneity  float64         `json:"homogeneity"`
	Completeness float64         `json:"completeness"`
	VMeasure     float64         `json:"v_measure"`
	Clusters     []ClusterReport `json:"clusters"` // in ascending order of their labels
	Undefined    []string        `json:"undefined"`
}

// ClusterReport has measures of one cluster. Fields other than Cluster and Weight are set only
// if there are vectors.
type ClusterReport struct {
	Cluster    string    `json:"cluster"`
	Weight     float64   `json:"weight"`
	Silhouette float64   `json:"silhouette"`
	Distance   float64   `json:"distance"` // mean distance to the centre
	Center     []float64 `json:"center"`
}

// MarshalJSON implements json.Marshaler; a NaN becomes null.
func (r ClusteringReport) MarshalJSON() ([]byte, error) { return encodeReport(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ClusteringReport) UnmarshalJSON(data []byte) error { return decodeReport(data, r) }

// String returns the numbers of the report and of each cluster as tables.
func (r ClusteringReport) String() string {
	var t text
	t.numbersOf(r)
	t.undefined(r.Undefined)
	list := [][]string{{"cluster", "weight", "silhouette", "distance"}}
	for _, c := range r.Clusters {
		list = append(list, []string{c.Cluster, shortNumber(c.Weight), shortNumber(c.Silhouette), shortNumber(c.Distance)})
	}
	t.grid(list)
	return t.String()
}

// clusteringState has the sums over the rows. Each operator sets only some of the fields.
type clusteringState struct {
	Geometry  geometryState
	Table     contingency
	Distances distanceState
	Problem   string // the first error of merging states, or empty
}

func (s *clusteringState) merge(o *clusteringState) {
	if err := s.Geometry.merge(&o.Geometry); err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	s.Table.merge(&o.Table)
	s.Distances.merge(&o.Distances)
}

// clusteringInput has the positions of the columns in a cleaned batch.
type clusteringInput struct {
	table
	cluster, label, vector, weight int
	byValue                        bool
}

// of returns the vectors and weights of a batch.
func (in *clusteringInput) of(rec arrow.Record) (x *vectorReader, w []float64, err error) {
	if in.weight >= 0 {
		w = numbers(rec.Column(in.weight), nil)
	}
	if in.vector >= 0 {
		x, err = openVectors(rec.Column(in.vector), 0)
	}
	return x, w, err
}

// Clustering measures clusters by the vectors of the rows, by true labels, or by both. It
// returns a dataset of one row with a ClusteringReport; see ReportOf.
func Clustering(rows *engine.Dataset, o ClusteringOptions) *engine.Dataset {
	const op = "evaluate.Clustering"
	in := clusteringInput{table: newTable(o.Skip), label: -1, vector: -1}
	in.cluster = in.readLabels("ClusterCol", o.ClusterCol)
	if o.VectorCol != "" {
		in.vector = in.readVectors("VectorCol", o.VectorCol)
	}
	if o.LabelCol != "" {
		in.label = in.readLabels("LabelCol", o.LabelCol)
	}
	in.weight = in.readWeight(o.WeightCol)
	if refused, ok := begin(op, rows, o.validateColumns(), &in.table); !ok {
		return refused
	}
	in.byValue = ordered(in.Columns[in.cluster].As.Type)
	sums := foldSpec[clusteringState]{
		op: "ClusteringSums",
		in: in.table,
		add: func(s *clusteringState, rec arrow.Record) error {
			x, w, err := in.of(rec)
			if err != nil {
				return err
			}
			if in.label >= 0 {
				known := s.Table.Classes.column(rec.Column(in.label), nil)
				if err := s.Table.add(known, s.Table.Classes.column(rec.Column(in.cluster), nil), w); err != nil {
					return err
				}
			}
			if in.vector < 0 {
				return nil
			}
			s.Geometry.ids = s.Geometry.Clusters.column(rec.Column(in.cluster), s.Geometry.ids)
			return s.Geometry.add(x, s.Geometry.ids, w)
		},
	}.fold(rows)
	states := []*engine.Dataset{sums}
	if in.vector >= 0 {
		states = append(states, o.secondPass(rows, sums, in))
	}
	return reporting[clusteringState, ClusteringReport]{
		op: "Clustering", merge: (*clusteringState).merge,
		report: func(s *clusteringState) (*ClusteringReport, error) { return o.report(s, in.byValue) },
	}.finish(operators.Union(states[0], states[1:]...))
}

// secondPass adds the second pass over the rows, which needs the centres of the clusters.
func (o ClusteringOptions) secondPass(rows, sums *engine.Dataset, in clusteringInput) *engine.Dataset {
	f := foldSpec[clusteringState]{
		op:    "ClusteringDistances",
		in:    in.second(),
		sides: []*engine.Dataset{sums},
		open:  func(c *engine.Context, s *clusteringState) error { return o.openSecondPass(c, s, in) },
		add: func(s *clusteringState, rec arrow.Record) error {
			x, w, err := in.of(rec)
			if err != nil {
				return err
			}
			s.Distances.ids = s.Distances.clusters.column(rec.Column(in.cluster), s.Distances.ids)
			s.Distances.add(x, s.Distances.ids, w)
			return nil
		},
	}
	if o.Exact {
		f.sides = append(f.sides, rows)
	}
	return f.fold(rows)
}

// openSecondPass computes the centres from the sums of all rows. For exact silhouettes it also
// collects all rows.
func (o ClusteringOptions) openSecondPass(c *engine.Context, s *clusteringState, in clusteringInput) error {
	var all clusteringState
	for _, rec := range c.Side(1) {
		if err := readStates(arrowrows.Record(rec), func(_ int, one *clusteringState) { all.merge(one) }); err != nil {
			return err
		}
	}
	if all.Problem != "" {
		return fmt.Errorf("column %q: %s", o.VectorCol, all.Problem)
	}
	if err := o.checkRows(all.Geometry.Rows); err != nil {
		return err
	}
	g := all.Geometry.geometry(in.byValue)
	var others *neighbours
	if o.Exact {
		others = newNeighbours(g)
		again := in.second()
		for _, rec := range c.Side(2) {
			clean, err := again.Rows(c, 0, arrowrows.Record(rec))
			if err != nil {
				return err
			}
			x, w, err := in.of(clean)
			if err == nil {
				others.take(g, x, all.Geometry.Clusters.column(clean.Column(in.cluster), nil), w)
			}
			clean.Release()
			if err != nil {
				return err
			}
		}
	}
	s.Distances.open(g, all.Geometry.Clusters, others)
	return nil
}

// MeasureClustering does what Clustering does, for slices. x has the vectors and truth the true
// labels. x, truth and weight may be nil. The options that name columns are ignored.
func MeasureClustering[C, L Label](cluster []C, x [][]float64, truth []L, weight []float64, o ClusteringOptions) (*ClusteringReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkSlices(len(cluster), nil, weight); err != nil {
		return nil, err
	}
	var s clusteringState
	if truth != nil {
		if len(truth) != len(cluster) {
			return nil, fmt.Errorf("truth has %d values, and cluster has %d", len(truth), len(cluster))
		}
		known, err := labelIDs(&s.Table.Classes, truth, "label")
		if err != nil {
			return nil, err
		}
		given, err := labelIDs(&s.Table.Classes, cluster, "cluster")
		if err != nil {
			return nil, err
		}
		if err := s.Table.add(known, given, weight); err != nil {
			return nil, err
		}
		o.LabelCol = "truth"
	}
	if x != nil {
		if err := o.measureVectors(&s, x, len(cluster), weight, func(k *classes) ([]int32, error) { return labelIDs(k, cluster, "cluster") }, isNumberLabel[C]()); err != nil {
			return nil, err
		}
		o.VectorCol = "x"
	}
	return o.report(&s, isNumberLabel[C]())
}

// measureVectors sets the fields of the state that are computed from vectors.
func (o ClusteringOptions) measureVectors(s *clusteringState, x [][]float64, n int, weight []float64, number func(*classes) ([]int32, error), byValue bool) error {
	if len(x) != n {
		return fmt.Errorf("x has %d vectors, and cluster has %d values", len(x), n)
	}
	for i, v := range x {
		if err := checkSlices(len(v), map[string][]float64{fmt.Sprintf("vector %d, component", i): v}, nil); err != nil {
			return err
		}
	}
	ids, err := number(&s.Geometry.Clusters)
	if err != nil {
		return err
	}
	if err := s.Geometry.add(sliceRows(x), ids, weight); err != nil {
		var bad *badRow
		if errors.As(err, &bad) {
			return fmt.Errorf("vector %d: %w", bad.row, err)
		}
		return err
	}
	if err := o.checkRows(int64(n)); err != nil {
		return err
	}
	g := s.Geometry.geometry(byValue)
	var others *neighbours
	if o.Exact {
		others = newNeighbours(g)
		others.take(g, sliceRows(x), ids, weight)
	}
	s.Distances.open(g, s.Geometry.Clusters, others)
	s.Distances.add(sliceRows(x), ids, weight)
	return nil
}

// report returns the report for a state.
func (o ClusteringOptions) report(s *clusteringState, byValue bool) (*ClusteringReport, error) {
	if s.Problem != "" {
		return nil, fmt.Errorf("column %q: %s", o.VectorCol, s.Problem)
	}
	nan := math.NaN()
	r := &ClusteringReport{
		Silhouette: nan, ExactSilhouette: nan, DaviesBouldin: nan, CalinskiHarabasz: nan, Within: nan,
		ARI: nan, NMI: nan, Purity: nan, Homogeneity: nan, Completeness: nan, VMeasure: nan,
	}
	var u undefined
	var asked []string // measures that must either be defined or have a reason in Undefined
	if o.LabelCol != "" {
		if err := s.Table.check(); err != nil {
			return nil, err
		}
		c := s.Table.counts(byValue)
		if r.Weight = c.total; c.total > 0 {
			asked = append(asked, "ari", "nmi", "purity", "homogeneity", "completeness", "v_measure")
			a := c.agreement()
			r.ARI, r.NMI, r.Purity, r.Homogeneity, r.Completeness, r.VMeasure = a.ari, a.nmi, a.purity, a.homogeneity, a.completeness, a.v
			if o.VectorCol == "" {
				r.listClusters(c)
			}
		}
	}
	if o.VectorCol != "" {
		g := s.Geometry.geometry(byValue)
		if r.Weight = g.total; g.total > 0 {
			o.measureGeometry(r, g, &s.Distances, &u)
		}
	}
	if r.Weight == 0 {
		u.none("all", "there are no rows of positive weight")
	}
	if o.VectorCol != "" {
		asked = append(asked, "silhouette", "davies_bouldin", "calinski_harabasz", "within")
		if o.Exact && len(r.Clusters) > 1 {
			asked = append(asked, "exact_silhouette")
		}
	}
	u.apply(r, r.Weight, asked...)
	r.Undefined = u
	return r, nil
}

// listClusters sets the clusters of a report without vectors.
func (r *ClusteringReport) listClusters(c *counts) {
	for i, name := range c.labels {
		if c.given[i] > 0 {
			r.Clusters = append(r.Clusters, ClusterReport{Cluster: name, Weight: c.given[i], Silhouette: math.NaN(), Distance: math.NaN()})
		}
	}
}

// measureGeometry sets the measures that are computed from vectors. There is at least one
// cluster.
func (o ClusteringOptions) measureGeometry(r *ClusteringReport, g *geometry, s *distanceState, u *undefined) {
	k := len(g.names)
	for c, name := range g.names {
		r.Clusters = append(r.Clusters, ClusterReport{
			Cluster: name, Weight: g.weight[c], Center: g.center[c],
			Silhouette: s.Silhouette[c].value() / g.weight[c], Distance: s.Distance[c].value() / g.weight[c],
		})
	}
	r.Within = g.within
	if k < 2 {
		const why = "there is one cluster"
		r.Silhouette, r.DaviesBouldin, r.CalinskiHarabasz = u.none("silhouette", why), u.none("davies_bouldin", why), u.none("calinski_harabasz", why)
		r.Clusters[0].Silhouette = math.NaN()
		return
	}
	var all, exact, between, worst sum
	for c := range g.names {
		all.merge(&s.Silhouette[c])
		exact.merge(&s.Exact[c])
		between.add(float64(g.weight[c] * kernel.SquaredDistance(g.center[c], g.mean)))
		top := 0.0
		for other := range g.names {
			if d := math.Sqrt(kernel.SquaredDistance(g.center[c], g.center[other])); d > 0 {
				top = max(top, (r.Clusters[c].Distance+r.Clusters[other].Distance)/d)
			}
		}
		worst.add(top)
	}
	r.Silhouette = all.value() / g.total
	if o.Exact {
		r.ExactSilhouette = exact.value() / g.total
	}
	r.DaviesBouldin = worst.value() / float64(k)
	if free := g.total - float64(k); free > 0 {
		r.CalinskiHarabasz = u.ratio("calinski_harabasz", between.value()/float64(k-1), g.within/free, "every row is at its cluster's centre")
	} else {
		r.CalinskiHarabasz = u.none("calinski_harabasz", "there are no more rows than clusters")
	}
}
