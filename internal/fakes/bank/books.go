package bank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Balance is what an account holds in one currency.
type Balance struct {
	Account  string `json:"account"`
	Currency string `json:"currency"`
	Balance  int64  `json:"balance"`
}

// openingCurrency is that of the amounts that accounts open with.
const openingCurrency = "EUR"

// balances lists every account and currency, in order.
func (b *Bank) balances() []Balance {
	seen := map[Balance]bool{}
	for account := range b.settings.Accounts {
		seen[Balance{Account: account, Currency: openingCurrency}] = true
	}
	for _, t := range b.booked {
		seen[Balance{Account: t.From, Currency: t.Currency}] = true
		seen[Balance{Account: t.To, Currency: t.Currency}] = true
	}
	lines := make([]Balance, 0, len(seen))
	for line := range seen {
		line.Balance = b.holds(line.Account, line.Currency)
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(x, y Balance) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Currency, y.Currency))
	})
	return lines
}

// Books returns the transfers, the balances and the notices as a table.
func (b *Bank) Books() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TRANSFER\tFROM\tTO\tAMOUNT\tREFERENCE")
	for _, t := range b.booked {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\n", t.ID, t.From, t.To, minor(t.Amount), t.Currency, t.Reference)
	}
	fmt.Fprintln(w, "\nACCOUNT\tBALANCE")
	for _, line := range b.balances() {
		fmt.Fprintf(w, "%s\t%s %s\n", line.Account, minor(line.Balance), line.Currency)
	}
	if len(b.notices) > 0 {
		fmt.Fprintln(w, "\nNOTICE\tTO\tREFERENCE\tTEXT")
	}
	for _, n := range b.notices {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.ID, n.To, n.Reference, n.Text)
	}
	_ = w.Flush() // a strings.Builder doesn't fail
	return out.String()
}

// minor writes minor units with two places, the sign in front.
func minor(amount int64) string {
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	return fmt.Sprintf("%s%d.%02d", sign, amount/100, amount%100)
}
