package fakes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"keep-proxy/internal/fakes"
)

// The bank drops the connection after it has booked; a script that knows no
// better sends again, and the money moves twice.
func Example() {
	dir, err := os.MkdirTemp("", "fakes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bank, err := fakes.Start(fakes.Options{API: "bank", Log: filepath.Join(dir, "effects.log")})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := bank.ArmNamed("commit-close"); err != nil {
		fmt.Println(err)
		return
	}
	transport := &http.Transport{}
	client := http.Client{Transport: transport}
	for attempt := 1; ; attempt++ {
		body := `{"from": "ann", "to": "bob", "amount": 1250, "currency": "EUR", "reference": "R-17"}`
		resp, err := client.Post(bank.URL()+"/transfers", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println("attempt", attempt, "failed")
			continue
		}
		_ = resp.Body.Close()
		fmt.Println("attempt", attempt, "got", resp.StatusCode)
		break
	}
	transport.CloseIdleConnections()
	tally, err := bank.Tally()
	fmt.Println(tally.Effects("transfer:R-17"), "effects", err)
	fmt.Print(bank.Books())
	fmt.Println(bank.Close())
	// Output:
	// attempt 1 failed
	// attempt 2 got 201
	// 2 effects <nil>
	// TRANSFER   FROM  TO   AMOUNT     REFERENCE
	// tr_000001  ann   bob  12.50 EUR  R-17
	// tr_000002  ann   bob  12.50 EUR  R-17
	//
	// ACCOUNT  BALANCE
	// ann      -25.00 EUR
	// bob      25.00 EUR
	// <nil>
}
