package rest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/jobmanager"
	"github.com/superstep-ml/superstep/jobmanager/rest"
)

func Example() {
	dir, err := os.MkdirTemp("", "superstep-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	token, err := security.NewToken()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := jobmanager.New(context.Background(), jobmanager.Config{Listen: "127.0.0.1:0", Dir: dir, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	s, err := rest.New(rest.Config{Listen: "127.0.0.1:0", Manager: m, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	r, err := http.NewRequest("GET", s.URL()+"/api/v1/jobs", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Close = true
	r.Header.Set("Authorization", "Bearer "+token.Reveal())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, string(body), err)
	// Output:
	// 200 OK []
	//  <nil>
}
