package textfile_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// The example resolves two files, infers their columns, and reads their records from four
// shards. One record spans two lines.
func Example() {
	dir, err := os.MkdirTemp("", "textfile")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"a.csv": "city, people\n\"Brno\",402739\n",
		"b.csv": "city, people\n\"New\nYork\",8258035\nVaduz,\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}

	// When the job is built, the files and their columns are determined.
	ctx, dialect := context.Background(), textfile.Dialect{Header: true}
	files, err := textfile.Resolve(filepath.Join(dir, "*.csv"))
	if err != nil {
		log.Fatal(err)
	}
	layout, err := textfile.InferCSV(ctx, files, dialect, textfile.InferOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout.Columns)

	// When the job runs, the rows are read.
	csv, err := textfile.OpenCSV(ctx, files, dialect, layout, textfile.Config{Shards: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer csv.Close()
	for shard := range 4 {
		err := csv.ReadShard(ctx, shard, 1024, func(rec arrow.Record) error {
			for i := range int(rec.NumRows()) {
				fmt.Printf("shard %d: %q %q\n", shard, batch.FormatValue(rec.Column(0), i), batch.FormatValue(rec.Column(1), i))
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [city utf8 people int64 null]
	// shard 0: "Brno" "402739"
	// shard 1: "New\nYork" "8258035"
	// shard 3: "Vaduz" ""
}
