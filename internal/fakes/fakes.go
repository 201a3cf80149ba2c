package fakes

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"keep-proxy/connectors"
	"keep-proxy/internal/fakes/bank"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/quotes"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/testca"
)

// Options say which fake to start, and how. API and Log are required.
type Options struct {
	// API is one of Names.
	API string
	// Log is the path of the log; an existing one is continued.
	Log string
	// Listen is the upstream's address; default 127.0.0.1:0.
	Listen string
	// Control is the address of the control listener; "" for none.
	Control string
	// CA signs the certificate; nil means plain HTTP.
	CA *testca.CA
	// Hosts are names for the certificate besides 127.0.0.1 and localhost.
	Hosts []string
	// NoHTTP2 leaves h2 out.
	NoHTTP2 bool
	// Settings, if not nil, is a JSON object with the API's settings.
	Settings []byte
}

// Fake is a running fake.
type Fake struct {
	*server.Server
	// API is the API itself; a *bank.Bank, say.
	API server.API
	log *oracle.Log
}

// Names returns the names of the fakes, sorted.
func Names() []string {
	names := append(connectors.Fakes(), "bank", "mail", "quotes")
	slices.Sort(names)
	return names
}

// New makes an API of this name.
func New(name string) (server.API, error) {
	switch name {
	case "bank":
		return bank.New(bank.Defaults()), nil
	case "quotes":
		return quotes.New(), nil
	case "mail":
		return data.Load(mail)
	}
	content, err := connectors.Fake(name)
	if err != nil {
		return nil, fmt.Errorf("fakes: no API %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return data.Load(content)
}

// mail is an API that sends messages.
//
//go:embed mail.yaml
var mail []byte

// Start starts a fake in this process. The caller closes it.
func Start(o Options) (*Fake, error) {
	api, err := New(o.API)
	if err != nil {
		return nil, err
	}
	if err := adjust(api, o.Settings); err != nil {
		return nil, err
	}
	cfg := server.Config{API: api, Listen: o.Listen, Control: o.Control, NoHTTP2: o.NoHTTP2}
	if o.CA != nil {
		if cfg.Certificate, err = o.CA.Leaf(slices.Clone(o.Hosts)...); err != nil {
			return nil, err
		}
	}
	log, err := oracle.Open(o.Log, nil)
	if err != nil {
		return nil, err
	}
	cfg.Log = log
	s, err := server.Start(cfg)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &Fake{Server: s, API: api, log: log}, nil
}

func adjust(api server.API, settings []byte) error {
	if settings == nil {
		return nil
	}
	adjustable, ok := api.(server.Adjustable)
	if !ok {
		return fmt.Errorf("fakes: %s has no settings", api.Name())
	}
	return adjustable.Adjust(settings)
}

// Books returns the API's books, "" if it keeps none.
func (f *Fake) Books() string {
	if keeper, ok := f.API.(server.Bookkeeper); ok {
		return keeper.Books()
	}
	return ""
}

// Adjust changes the API's settings; see the API's package.
func (f *Fake) Adjust(settings string) error { return adjust(f.API, []byte(settings)) }

// Close ends the fake and releases its log. It returns the first thing that
// went wrong in its life, and then its counts can't be relied on.
func (f *Fake) Close() error { return errors.Join(f.Server.Close(), f.log.Close()) }
