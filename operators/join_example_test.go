package operators_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// order is a row of a shop's orders. Guests have no customer number.
type order struct {
	ID         int64
	CustomerID *int64
	Country    string
	Net        float64
}

type customer struct {
	ID   int64
	Name string
	City string
}

func number(v int64) *int64 { return &v }

var orders = []order{
	{1001, number(7), "FR", 120},
	{1002, number(3), "CH", 45.5},
	{1003, nil, "CH", 9.9},
	{1004, number(7), "FR", 30},
	{1005, number(12), "DE", 250},
}

var customers = []customer{
	{3, "Amara Okafor", "Bern"},
	{7, "Lena Dubois", "Lyon"},
	{9, "Tomasz Nowak", "Gdynia"},
}

func ExampleJoin() {
	type line struct {
		Order int64
		Name  string
		Net   float64
	}
	show[line](func(b *engine.Builder) *engine.Dataset {
		lines := operators.Join(operators.FromSlice(b, orders), operators.FromSlice(b, customers),
			operators.On().Equal("customer_id", "id"), operators.Left,
			func(o *order, c *customer) line {
				if c == nil { // a guest, or a former customer
					return line{o.ID, "unknown", o.Net}
				}
				return line{o.ID, c.Name, o.Net}
			})
		return operators.Sort(lines, operators.Asc("order"))
	})
	// Output:
	// {1001 Lena Dubois 120}
	// {1002 Amara Okafor 45.5}
	// {1003 unknown 9.9}
	// {1004 Lena Dubois 30}
	// {1005 unknown 250}
}

func ExampleAntiJoin() {
	show[customer](func(b *engine.Builder) *engine.Dataset {
		return operators.AntiJoin(operators.FromSlice(b, customers), operators.FromSlice(b, orders),
			operators.On().Equal("id", "customer_id")) // customers without orders
	})
	// Output:
	// {9 Tomasz Nowak Gdynia}
}

func ExampleCoGroup() {
	type account struct {
		Name string
		Text string
	}
	show[account](func(b *engine.Builder) *engine.Dataset {
		accounts := operators.CoGroup(operators.FromSlice(b, customers), operators.FromSlice(b, orders),
			operators.On().Equal("id", "customer_id"),
			func(who *operators.Group[customer], bought *operators.Group[order], emit func(account)) error {
				largest := slices.MaxFunc(append(slices.Collect(bought.Rows()), order{}), func(a, b order) int { return cmp.Compare(a.Net, b.Net) })
				for c := range who.Rows() {
					emit(account{c.Name, fmt.Sprintf("%d orders, up to %g", bought.Len(), largest.Net)})
				}
				return nil
			})
		return operators.Sort(accounts, operators.Asc("name"))
	})
	// Output:
	// {Amara Okafor 1 orders, up to 45.5}
	// {Lena Dubois 2 orders, up to 120}
	// {Tomasz Nowak 0 orders, up to 0}
}

func ExampleDistinct() {
	type country struct{ Country string }
	show[country](func(b *engine.Builder) *engine.Dataset {
		return operators.Sort(operators.Distinct(operators.FromSlice(b, orders), "country"), operators.Asc("country"))
	})
	// Output:
	// {CH}
	// {DE}
	// {FR}
}

func ExampleMapLookup() {
	type tax struct {
		Country string
		Rate    float64
	}
	type bill struct {
		ID    int64
		Gross float64
	}
	rates := []tax{{"CH", 0.08}, {"DE", 0.19}, {"FR", 0.2}}
	show[bill](func(b *engine.Builder) *engine.Dataset {
		return operators.MapLookup(operators.FromSlice(b, orders), operators.FromSlice(b, rates),
			func(t tax) string { return t.Country },
			func(o order, rates *operators.Lookup[string, tax]) (bill, error) {
				t, ok := rates.Get(o.Country)
				if !ok {
					return bill{}, fmt.Errorf("order %d: no tax rate for country %q", o.ID, o.Country)
				}
				return bill{o.ID, o.Net + float64(o.Net*t.Rate)}, nil
			})
	})
	// Output:
	// {1001 144}
	// {1002 49.14}
	// {1003 10.692}
	// {1004 36}
	// {1005 297.5}
}
