package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/operators"
)

// RankingOptions are the options of Ranking. QueryCol, LabelCol and ScoreCol are required. The
// zero values of the other fields are their defaults.
type RankingOptions struct {
	// QueryCol names the column of queries, of any scalar type. The rows with equal values in
	// this column form one list.
	QueryCol string
	// LabelCol names the number column with the relevance of the row, from 0 to 500.
	LabelCol string
	// ScoreCol names the number column by which lists are ordered, with the largest score
	// first.
	ScoreCol string
	// WeightCol names a column of weights of queries, numbers of 0 or more. All rows of a query
	// have the same weight. Empty means that every query has the weight 1.
	WeightCol string
	// K is the number of rows at the top of the list that the measures consider; 0 means 10.
	K int
	// Relevant is the smallest label of a relevant row; 0 means 1. NDCG does not use it.
	Relevant float64
	// Flat says how NDCG counts a query whose labels are all 0, for which all orders are
	// equally good. The zero value leaves such queries out.
	Flat FlatQueries
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Validate returns what is wrong with the options, without checking that the columns exist.
func (o RankingOptions) Validate() error {
	switch {
	case o.K < 0 || o.K > 1<<24:
		return invalid("K is %d: want 1 to %d, or 0 for 10", o.K, 1<<24)
	case !(o.Relevant >= 0 && o.Relevant <= maxRelevance):
		return invalid("Relevant is %v: want more than 0, at most %d, or 0 for 1", o.Relevant, maxRelevance)
	case o.Flat < FlatOut || o.Flat > FlatZero:
		return fmt.Errorf("%v is not one of the package's constants", o.Flat)
	}
	return nil
}

const maxRelevance = 500

// FlatQueries says how NDCG counts a query whose labels are all 0.
type FlatQueries int

const (
	// FlatOut leaves such queries out, as the metrics of package gbdt do.
	FlatOut FlatQueries = iota
	// FlatOne counts such queries as 1, as LightGBM and XGBoost do.
	FlatOne
	// FlatZero counts such queries as 0, as scikit-learn does.
	FlatZero
)

// String returns "left out", "1" or "0".
func (f FlatQueries) String() string {
	if names := []string{"left out", "1", "0"}; f >= 0 && int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("FlatQueries(%d)", int(f))
}

func (o RankingOptions) withDefaults() RankingOptions {
	if o.K == 0 {
		o.K = 10
	}
	if o.Relevant == 0 {
		o.Relevant = 1
	}
	return o
}

// RankingReport has measures of ordered lists. Each measure is a mean over queries. Where rows
// of a query have equal scores, the measure of the query is its mean over all orders of these
// rows. A measure that is not defined is NaN, and Undefined gives the reason.
type RankingReport struct {
	Weight  float64 `json:"weight"`  // the weight of all queries
	Queries int64   `json:"queries"` // number of queries
	// NDCG is the sum of (2^label-1)/log2(1+rank) over the first K rows, divided by the same
	// sum for the best order. Ranks count from 1. FlatQueries is the number of queries whose
	// labels are all 0. FlatAs says how they count: "left out", "1" or "0".
	NDCG        float64 `json:"ndcg"`
	FlatQueries int64   `json:"flat_queries"`
	FlatAs      string  `json:"flat_as"`
	// The measures below leave out queries without relevant rows; Irrelevant is the number of
	// these queries. MAP takes, for each relevant row among the first K, the precision of the
	// list down to that row. The sum of these precisions is divided by min(K, number of
	// relevant rows).
	MAP        float64 `json:"map"`
	Irrelevant int64   `json:"irrelevant"`
	// MRR is 1 divided by the rank of the first relevant row in the whole list.
	MRR float64 `json:"mrr"`
	// Precision is the number of relevant rows among the first K, divided by K. Recall is that
	// number divided by the number of all relevant rows.
	Precision float64  `json:"precision"`
	Recall    float64  `json:"recall"`
	K         int64    `json:"k"`
	Undefined []string `json:"undefined"`
}

// MarshalJSON implements json.Marshaler; a NaN becomes null.
func (r RankingReport) MarshalJSON() ([]byte, error) { return encodeReport(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *RankingReport) UnmarshalJSON(data []byte) error { return decodeReport(data, r) }

// String returns the numbers as a table.
func (r RankingReport) String() string {
	var t text
	t.numbersOf(r)
	t.line("flat_as", r.FlatAs+", in ndcg: queries whose labels are all 0")
	t.undefined(r.Undefined)
	return t.String()
}

// listed is a row of the list of a query.
type listed struct {
	Query  string  `column:"query"`
	Label  float64 `column:"label"`
	Score  float64 `column:"score"`
	Weight float64 `column:"weight"`
}

// rankingState has the sums over queries.
type rankingState struct {
	Queries, Irrelevant, Flat          int64
	Weight, GainWeight, RelevantWeight sum
	NDCG, MAP, MRR, Precision, Recall  sum
}

func (s *rankingState) merge(o *rankingState) {
	s.Queries += o.Queries
	s.Irrelevant += o.Irrelevant
	s.Flat += o.Flat
	for _, p := range [][2]*sum{
		{&s.Weight, &o.Weight}, {&s.GainWeight, &o.GainWeight}, {&s.RelevantWeight, &o.RelevantWeight},
		{&s.NDCG, &o.NDCG}, {&s.MAP, &o.MAP}, {&s.MRR, &o.MRR}, {&s.Precision, &o.Precision}, {&s.Recall, &o.Recall},
	} {
		p[0].merge(p[1])
	}
}

// Ranking measures lists ordered by score. It returns a dataset of one row with a
// RankingReport; see ReportOf. All rows of a query are moved to one shard.
func Ranking(rows *engine.Dataset, o RankingOptions) *engine.Dataset {
	const op = "evaluate.Ranking"
	in := newTable(o.Skip)
	in.readLabels("QueryCol", o.QueryCol)
	in.readNumber("LabelCol", o.LabelCol)
	in.readNumber("ScoreCol", o.ScoreCol)
	weight := in.readWeight(o.WeightCol)
	if refused, ok := begin(op, rows, o.Validate(), &in); !ok {
		return refused
	}
	o = o.withDefaults()
	lists := rows.Builder().Add(engine.Spec{
		Op: "RankingRows", Attrs: in.attrs(), Schema: arrowrows.SchemaOf[listed](), Inputs: []engine.Port{{From: rows}},
		Operator: func() engine.Operator { return &lister{in: in, weight: weight} },
	})
	together := operators.PartitionByHash(lists, "query")
	states := rows.Builder().Add(engine.Spec{
		Op: "RankingLists", Schema: arrowrows.SchemaOf[stateRow](), Inputs: []engine.Port{{From: together}},
		Operator: func() engine.Operator { return &ranker{ranking: newRanking(o)} },
	})
	return reporting[rankingState, RankingReport]{op: "Ranking", merge: (*rankingState).merge, report: o.report}.finish(states)
}

// lister is the operator that checks rows and converts queries to text.
type lister struct {
	engine.BaseOperator
	in     table
	weight int
	row    int // number of the next row in the current shard
	rows   []listed
}

func (o *lister) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	clean, err := o.in.validRows(c, rows, o.row)
	if err != nil {
		return err
	}
	defer clean.Release()
	label, score := numbers(clean.Column(1), nil), numbers(clean.Column(2), nil)
	var w []float64
	if o.weight >= 0 {
		w = numbers(clean.Column(o.weight), nil)
	}
	printer := batch.NewPrinter(clean.Column(0))
	o.rows = o.rows[:0]
	var text []byte
	for i, l := range label {
		if !(l >= 0 && l <= maxRelevance) {
			return o.in.place(&badRow{i, fmt.Errorf("column %q is %v: want a relevance of 0 to %d", o.in.Columns[1].Name, l, maxRelevance)}, o.row)
		}
		text = printer.Append(text[:0], i)
		o.rows = append(o.rows, listed{plainZero(string(text)), l, score[i] + 0, weightOf(w, i)})
	}
	o.row += int(rows.NumRows())
	if len(o.rows) == 0 {
		return nil
	}
	return arrowrows.Emit(c.Allocator, out, shard, o.rows)
}

func (o *lister) EndShard(*engine.Context, int, engine.Output) error {
	o.row = 0
	return nil
}

// plainZero returns "0" for the query "-0", so that both are the same query.
func plainZero(query string) string {
	if query == "-0" {
		return "0"
	}
	return query
}

// ranker is the operator that measures the lists of each shard.
type ranker struct {
	engine.BaseOperator
	*ranking
	rows     []listed
	memory   interface{ Release(int64) }
	reserved int64
}

const listedBytes = 80 // bytes for a row, including a short text

func (o *ranker) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	bytes := int64(rows.NumRows()) * listedBytes
	if err := c.Memory.Reserve(bytes); err != nil {
		return fmt.Errorf("hold the lists of a shard: %w, or cut the data into more shards", err)
	}
	o.memory, o.reserved = c.Memory, o.reserved+bytes
	query, label, score, weight := rows.Column(0).(*array.String), rows.Column(1).(*array.Float64), rows.Column(2).(*array.Float64), rows.Column(3).(*array.Float64)
	for i := range query.Len() {
		o.rows = append(o.rows, listed{strings.Clone(query.Value(i)), label.Value(i), score.Value(i), weight.Value(i)})
	}
	return nil
}

func (o *ranker) EndShard(*engine.Context, int, engine.Output) error {
	err := o.lists(o.rows)
	clear(o.rows)
	o.rows = o.rows[:0]
	o.free()
	return err
}

func (o *ranker) Finish(c *engine.Context, out engine.Output) error {
	return emitState(c, c.Range.Hi-1, &o.state, out)
}

func (o *ranker) Close() error {
	o.free()
	return nil
}

func (o *ranker) free() {
	if o.memory != nil {
		o.memory.Release(o.reserved)
	}
	o.reserved = 0
}

// MeasureRanking does what Ranking does, for slices. weight may be nil. The options that name
// columns are ignored.
func MeasureRanking[Q Label](query []Q, label, score, weight []float64, o RankingOptions) (*RankingReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkSlices(len(query), map[string][]float64{"label": label, "score": score}, weight); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	rows := make([]listed, len(query))
	for i, q := range query {
		text, ok := appendLabel(nil, q)
		if !ok {
			return nil, fmt.Errorf("query %d is NaN", i)
		}
		if l := label[i]; l < 0 || l > maxRelevance {
			return nil, fmt.Errorf("label %d is %v: want a relevance of 0 to %d", i, l, maxRelevance)
		}
		rows[i] = listed{plainZero(string(text)), label[i], score[i] + 0, weightOf(weight, i)}
	}
	r := newRanking(o)
	if err := r.lists(rows); err != nil {
		return nil, err
	}
	return o.report(&r.state)
}

// ranking computes the measures of lists.
type ranking struct {
	options  RankingOptions
	state    rankingState
	discount []float64 // discount[i] is 1/log2(1+rank) for rank i+1
	labels   []float64
}

func newRanking(o RankingOptions) *ranking { return &ranking{options: o} }

// lists measures the lists that the rows form. It sorts rows in place.
func (r *ranking) lists(rows []listed) error {
	// Sort by label as well, so that the order of sums does not depend on the order of rows.
	slices.SortFunc(rows, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Label, a.Label))
	})
	for lo := 0; lo < len(rows); {
		hi := lo + 1
		for hi < len(rows) && rows[hi].Query == rows[lo].Query {
			if rows[hi].Weight != rows[lo].Weight {
				return fmt.Errorf("query %q has rows of weights %v and %v: all rows of a query have the same", rows[lo].Query, min(rows[lo].Weight, rows[hi].Weight), max(rows[lo].Weight, rows[hi].Weight))
			}
			hi++
		}
		r.list(rows[lo:hi])
		lo = hi
	}
	return nil
}

// list measures one sorted list. A tie of rows with equal scores contributes its expectation
// over the orders of these rows (McSherry and Najork, Computing Information Retrieval
// Performance Measures Efficiently in the Presence of Tied Scores, ECIR 2008).
func (r *ranking) list(rows []listed) {
	o, s, w := r.options, &r.state, rows[0].Weight
	s.Queries++
	s.Weight.add(w)
	relevant, best := 0, r.best(rows)
	for _, row := range rows {
		if row.Label >= o.Relevant {
			relevant++
		}
	}
	var gain, found, average, first float64
	for lo, before := 0, 0; lo < len(rows); {
		hi, hits, gains := lo, 0, 0.0
		for ; hi < len(rows) && rows[hi].Score == rows[lo].Score; hi++ {
			gains += gainOf(rows[hi].Label)
			if rows[hi].Label >= o.Relevant {
				hits++
			}
		}
		size := float64(hi - lo)
		gain += float64(gains / size * r.discounts(lo, min(hi, o.K)))
		if before == 0 && hits > 0 {
			first = reciprocal(lo, hi-lo, hits)
		}
		for i := lo; i < min(hi, o.K); i++ {
			p := float64(hits) / size
			found += p
			above := float64(before+1) + between(i-lo, hits-1, hi-lo-1)
			average += float64(p * (above / float64(i+1)))
		}
		before += hits
		lo = hi
	}
	if best > 0 {
		s.GainWeight.add(w)
		s.NDCG.add(float64(w * (gain / best)))
	} else {
		s.Flat++
		switch o.Flat {
		case FlatOne:
			s.GainWeight.add(w)
			s.NDCG.add(w)
		case FlatZero:
			s.GainWeight.add(w)
		}
	}
	if relevant == 0 {
		s.Irrelevant++
		return
	}
	s.RelevantWeight.add(w)
	s.MAP.add(float64(w * (average / float64(min(o.K, relevant)))))
	s.MRR.add(float64(w * first))
	s.Precision.add(float64(w * (found / float64(o.K))))
	s.Recall.add(float64(w * (found / float64(relevant))))
}

// between returns the expected number of relevant rows among n rows that are drawn at random
// from rest rows, of which hits are relevant. The rest rows are those of a tie without one
// relevant row.
func between(n, hits, rest int) float64 {
	if rest == 0 {
		return 0
	}
	return float64(float64(n)*float64(hits)) / float64(rest)
}

func gainOf(label float64) float64 { return kernel.Exp2(label) - 1 }

// best returns the sum of the discounted gains for the best order.
func (r *ranking) best(rows []listed) float64 {
	r.labels = r.labels[:0]
	for _, row := range rows {
		r.labels = append(r.labels, row.Label)
	}
	slices.SortFunc(r.labels, func(a, b float64) int { return cmp.Compare(b, a) })
	// Equal labels are added together in the same way as list adds equal scores, so that the
	// quotient for a perfect order is exactly 1.
	var best float64
	for lo := 0; lo < len(r.labels); {
		hi, gains := lo, 0.0
		for ; hi < len(r.labels) && r.labels[hi] == r.labels[lo]; hi++ {
			gains += gainOf(r.labels[hi])
		}
		best += float64(gains / float64(hi-lo) * r.discounts(lo, min(hi, r.options.K)))
		lo = hi
	}
	return best
}

// discounts returns the sum of the discounts of the positions lo to hi-1, counted from 0.
func (r *ranking) discounts(lo, hi int) float64 {
	for len(r.discount) < hi {
		r.discount = append(r.discount, 1/kernel.Log2(float64(len(r.discount)+2)))
	}
	var s float64
	for i := lo; i < hi; i++ {
		s += r.discount[i]
	}
	return s
}

// reciprocal returns the expectation of 1/rank of the first relevant row if that row is in a
// tie. The tie has size rows, of which hits are relevant, and follows lo other rows.
func reciprocal(lo, size, hits int) float64 {
	var s float64
	p := float64(hits) / float64(size) // probability that the first relevant row is the x-th of the tie
	for x := 1; x <= size-hits+1; x++ {
		s += p / float64(lo+x)
		p = float64(p * (float64(size-x-hits+1) / float64(size-x)))
	}
	return s
}

// report returns the report for a state.
func (o RankingOptions) report(s *rankingState) (*RankingReport, error) {
	r := &RankingReport{Weight: s.Weight.value(), Queries: s.Queries, Irrelevant: s.Irrelevant, K: int64(o.K), FlatQueries: s.Flat, FlatAs: o.Flat.String()}
	var u undefined
	w := s.RelevantWeight.value()
	r.NDCG = u.ratio("ndcg", s.NDCG.value(), s.GainWeight.value(), "no query of positive weight has a label above 0")
	r.MAP = u.ratio("map", s.MAP.value(), w, "no query of positive weight has a relevant row")
	r.MRR = u.ratio("mrr", s.MRR.value(), w, "no query of positive weight has a relevant row")
	r.Precision, r.Recall = s.Precision.value()/w, s.Recall.value()/w
	if w == 0 {
		r.Precision, r.Recall = math.NaN(), math.NaN()
	}
	if w > 0 {
		u.apply(r, r.Weight, "precision", "recall")
	}
	u.apply(r, r.Weight, "ndcg", "map", "mrr")
	r.Undefined = u
	return r, nil
}
