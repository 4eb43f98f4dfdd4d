package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
)

// options are the command-line flags.
type options struct {
	Alink   string `placeholder:"FILE" help:"File with the output of bench/alink --json."`
	KMeans  string `name:"kmeans" placeholder:"FILE" help:"File with the output of bench/kmeans --json, with scikit-learn."`
	Trees   string `placeholder:"FILE" help:"File with the output of bench/trees --json, with XGBoost and LightGBM."`
	Threads int    `default:"2" help:"Draw the times with this number of threads."`
	Out     string `required:"" placeholder:"FILE" help:"SVG or PNG file to draw."`
}

// Validate is called by kong.
func (o *options) Validate() error {
	if ext := filepath.Ext(o.Out); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("--out %s: want a name that ends in .svg or .png", o.Out)
	}
	if o.Alink == "" && o.KMeans == "" && o.Trees == "" {
		return errors.New("want at least one of --alink, --kmeans and --trees")
	}
	return nil
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("chart"), kong.Description("Draws how long other libraries take to train, as multiples of Superstep's time."), kong.UsageOnError())
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	bars, err := o.bars()
	if err != nil {
		return err
	}
	return draw(bars, o.Out)
}
