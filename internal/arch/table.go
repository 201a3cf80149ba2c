package arch

// module is the path that our own imports begin with.
const module = "keep-proxy"

// row says what one package, or a tree of packages, may import of ours.
type row struct {
	// pkg is a folder from the module's root. "name/..." covers the folder and
	// all below it, which may also import each other; "*" stands for part of one
	// name.
	pkg string
	// may lists, in the same form, what the package may import.
	may []string
	// tests lists what only its test files may import besides.
	tests []string
}

// doubles is what any test may be built on: test ledgers and counting upstreams.
var doubles = []string{"ledger/ledgertest", "internal/fakes/...", "internal/clock"}

// table is the whole house. A new room needs a row here.
var table = []row{
	{pkg: "internal/background"},
	{pkg: "internal/clock"},
	{pkg: "internal/fault"},
	{pkg: "internal/arch"},
	{pkg: "internal/program"},
	{pkg: "internal/names"},
	{pkg: "internal/masking"},
	{pkg: "internal/hop"},
	{pkg: "internal/coding"},
	{pkg: "internal/hello"},
	{pkg: "internal/strictyaml"},
	{pkg: "internal/verdict"},
	{pkg: "config", may: []string{"internal/names", "internal/strictyaml"}},
	{pkg: "rules", may: []string{"internal/coding", "internal/strictyaml", "internal/verdict"}},
	{pkg: "rules/lint", may: []string{"rules", "internal/verdict"}},
	{pkg: "connectors", tests: []string{"rules"}},
	{pkg: "internal/fakes/...", may: []string{"internal/clock", "connectors"}},
	{pkg: "ledger", may: []string{"internal/clock", "internal/names", "internal/verdict"}},
	{pkg: "ledger/ledgertest", may: []string{"ledger", "internal/fault", "internal/clock"}, tests: []string{"ledger/*store"}},
	{pkg: "ledger/badgerstore/wal"},
	{pkg: "ledger/*store", may: []string{"ledger", "ledger/badgerstore/wal", "internal/fault", "internal/clock", "internal/verdict"}},
	{pkg: "upstream", may: []string{"internal/coding", "internal/fault", "internal/clock", "internal/hop", "internal/verdict"}},
	{pkg: "dispatch", may: []string{
		"rules", "ledger", "upstream", "internal/background", "internal/clock", "internal/hop", "internal/masking", "internal/verdict",
	}, tests: []string{"ledger/*store"}},
	{pkg: "reconcilers", may: []string{
		"dispatch", "rules", "ledger", "upstream", "internal/background", "internal/fault", "internal/clock", "internal/program", "internal/masking",
		"internal/verdict",
	},
		tests: []string{"connectors", "ledger/*store"}},
	{pkg: "proxy/strict"},
	{pkg: "proxy/h1", tests: []string{"proxy/strict"}},
	{pkg: "proxy", may: []string{
		"proxy/strict", "proxy/h1", "dispatch", "rules", "ledger", "upstream", "internal/background", "internal/fault", "internal/clock",
		"internal/hello", "internal/hop", "internal/names", "internal/masking", "internal/verdict",
	},
		tests: []string{"connectors", "ledger/*store"}},
	{pkg: "notify", may: []string{"ledger", "internal/names", "internal/program"}},
	{pkg: "admin/wire"},
	{pkg: "admin/client", may: []string{"admin/wire"}, tests: []string{"admin", "ledger"}},
	{
		pkg: "admin", may: []string{"admin/wire", "ledger", "internal/clock", "internal/hop", "internal/names", "internal/strictyaml", "internal/verdict"},
		tests: []string{"admin/client", "ledger/*store"},
	},
	{pkg: "app", may: []string{
		"config", "dispatch", "rules", "rules/lint", "connectors", "ledger", "ledger/*store", "upstream", "reconcilers", "proxy",
		"admin", "admin/wire", "admin/client", "notify", "internal/fault", "internal/clock", "internal/program",
	}},
	{pkg: "cli/netns"},
	{pkg: "cli/isolate", may: []string{"cli/netns", "internal/hello"}},
	{pkg: "cli/child", may: []string{"cli/netns", "internal/program"}},
	{pkg: "proof"},
	{pkg: "proof/histories", tests: []string{"proxy", "rules", "ledger", "upstream", "reconcilers"}},
	{pkg: "cli/demo", may: []string{"app", "config", "admin/client", "admin/wire", "cli/serving", "internal/fakes/..."}},
	{pkg: "cli/trials", may: []string{"app", "config", "rules", "admin/client", "admin/wire", "internal/fakes/...", "internal/clock", "connectors"}},
	{pkg: "cli/doctor"},
	{pkg: "cli/managed", may: []string{"admin/client", "admin/wire"}},
	{pkg: "cli/serving", may: []string{"admin/client", "admin/wire"}},
	{pkg: "cmd/keep-proxy", may: []string{
		"app", "config", "connectors", "rules", "rules/lint", "admin/client", "admin/wire", "cli/child", "cli/demo", "cli/doctor", "cli/isolate",
		"cli/managed", "cli/netns", "cli/serving", "cli/trials",
		"internal/clock", "internal/fakes/...", "internal/fault", "ledger", "ledger/*store",
	}},
	{pkg: "integration/clients", may: []string{"internal/fakes/..."}},
	{pkg: "integration/sdk", may: []string{"internal/fakes/..."}},
	{pkg: "integration/hostile", may: []string{"app", "config", "internal/clock", "upstream", "ledger"}},
	{pkg: "integration/powerloss"},
	{pkg: "integration", may: []string{
		"app", "config", "admin/client", "admin/wire", "internal/fakes/...", "internal/fault", "internal/clock", "integration/powerloss",
	}, tests: []string{"connectors", "ledger/*store"}},
}

// confinement keeps a library in one place, so that it can be replaced, and its
// traps guarded against, there.
type confinement struct {
	// lib is the import path; paths below it are meant too.
	lib string
	// pkg is the only package that may import it, "" for none.
	pkg string
	// files bounds how many of its files may, tests not counted. 0: any number.
	files int
	// tests is a package whose tests may import it too, "" for none.
	tests string
}

var confined = []confinement{
	{lib: "github.com/elazarl/goproxy", pkg: "proxy", files: 1, tests: "integration"},
	{lib: "github.com/dgraph-io/badger", pkg: "ledger/badgerstore"},
	{lib: "github.com/spf13/viper", pkg: "config"},
	{lib: "github.com/fsnotify/fsnotify", pkg: "app"},
	{lib: "github.com/emersion/go-message", pkg: "rules", files: 1},
	{lib: "go.opentelemetry.io", pkg: "app"},
	{lib: "github.com/aws/aws-sdk-go-v2", pkg: "app", files: 1},
	{lib: "software.sslmate.com/src/go-pkcs12", pkg: "app", files: 1},
	{lib: "C"}, // the program builds without a C compiler
}
