// Command features makes a table of features for machine learning from the orders of a shop. For
// each customer, the table has the number of orders, their total in euros, and the largest order
// in euros.
package main

import (
	"embed"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

//go:embed data/*.csv
var bundled embed.FS

type args struct { // the job's arguments are the program's flags
	Dir    string `help:"Directory of customers.csv, orders.csv and rates.csv (default: the bundled ones)."`
	Year   int64  `help:"The year up to which customers are counted as such." default:"2026"`
	Output string `help:"CSV file to write the table to."`
}

// The types of the rows in the job. Their fields are columns.
type (
	order struct {
		ID, CustomerID int64
		Currency       string
		Amount         float64
	}
	rate struct {
		Currency string
		Euros    float64
	}
	priced struct {
		CustomerID int64
		Euros      float64
	}
	customer struct {
		ID      int64
		Country string
		Since   int64
	}
	sum struct { // sums over the orders of a customer
		Orders         int64
		Spent, Largest float64
	}
	features struct {
		ID             int64
		Country        string
		Years, Orders  int64
		Spent, Largest float64
	}
)

// price converts the amount of an order into euros.
func price(o order, rates *operators.Lookup[string, rate]) (priced, error) {
	r, ok := rates.Get(o.Currency)
	if !ok {
		return priced{}, fmt.Errorf("order %d is in %s, for which there is no rate", o.ID, o.Currency)
	}
	return priced{o.CustomerID, o.Amount * r.Euros}, nil
}

// table returns the function that computes the features of customer c in the given year. s has
// the sums of the customer's orders; it is nil if there are none.
func table(year int64) func(c *customer, s *sum) features {
	return func(c *customer, s *sum) features {
		if s == nil { // the customer has no orders
			s = &sum{}
		}
		return features{c.ID, c.Country, year - c.Since, s.Orders, s.Spent, s.Largest}
	}
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("features", func(b *engine.Builder, a args) error {
	read := operators.CSVOptions{Header: true}
	if a.Dir == "" {
		a.Dir, read.FS = "data", bundled
	}
	rates := operators.ReadCSVAs[rate](b, a.Dir+"/rates.csv", read)
	orders := operators.MapLookup(operators.ReadCSVAs[order](b, a.Dir+"/orders.csv", read), rates, func(r rate) string { return r.Currency }, price)
	sums := operators.GroupBy(orders, "customer_id").Aggregate(
		operators.CountRows().As("orders"), operators.SumOf("euros").As("spent"), operators.MaxOf("euros").As("largest"))
	customers := operators.ReadCSVAs[customer](b, a.Dir+"/customers.csv", read)
	rows := operators.Join(customers, sums, operators.On().Equal("id", "customer_id"), operators.Left, table(a.Year))
	sorted := operators.Sort(rows, operators.Asc("id"))
	operators.Print(sorted, operators.PrintOptions{})
	if a.Output != "" {
		operators.WriteCSV(sorted, a.Output, operators.CSVWriteOptions{})
	}
	return nil
})

func main() { engine.Main(job) }
