package catalog_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

func ExampleDecode() {
	file, err := model.ReadFile("../prepare/testdata/imputer.v1.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := catalog.Decode(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Kind(), m.Inputs()[0].Column)
	_, ok := m.(*prepare.ImputerModel)
	fmt.Println(ok)
	// Output:
	// imputer age
	// true
}
