package reconcilers

import (
	"errors"

	"keep-proxy/rules"
)

// authorised returns the request with the credential set, in place of whatever
// the field held.
func authorised(request *rules.Request, name, value string) (*rules.Request, error) {
	if name == "" {
		return request, nil
	}
	header := request.Header.Clone()
	header.Set(name, value)
	with, refusal := rules.Rebuild(request.Method, request.URL(), header, request.Body())
	if refusal != nil {
		return nil, errors.New("the configured credential is no valid header field")
	}
	return with, nil
}

// sameAccount makes sure that what is asked with the credentials of now is asked
// about the account of the record.
func sameAccount(t *try, match rules.Match) error {
	if !t.connector.HasAccount {
		return nil
	}
	derived, refusal := t.operation.Derive(t.request, match)
	switch {
	case refusal != nil:
		return errors.New("the account of the configured credentials can't be told")
	case derived.Account != t.mutation.Account:
		return errors.New("the configured credentials are for another account")
	}
	return nil
}
