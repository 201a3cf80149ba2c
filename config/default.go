package config

import "time"

// Default returns the configuration that an empty file stands for. Paths that
// default into the data folder are empty in it; [Load] fills them in.
func Default() Config {
	return Config{
		Proxy: Proxy{
			Listen:         []string{"127.0.0.1:8080"},
			RunListen:      "127.0.0.1:0",
			Unmatched:      UnmatchedDeny,
			BlockScope:     BlockWorkflow,
			MaxBody:        10 * MiB,
			MaxHead:        64 * KiB,
			MaxConnections: 20_000,
			Timeouts: Timeouts{
				Request:  5 * time.Minute,
				Dial:     10 * time.Second,
				Response: 100 * time.Second,
				Total:    10 * time.Minute,
			},
			Egress: Egress{DenyPrivate: true},
		},
		Admin:      Admin{Listen: "127.0.0.1:8081"},
		Ledger:     Ledger{Engine: EngineBadger, MinFree: 256 * MiB, Retention: Retention{Keep: 720 * time.Hour, After: AfterRefuse}},
		Connectors: Connectors{Bundled: Bundled{All: true}},
		Reconcile: Reconcile{
			Inline:              10 * time.Second,
			Base:                10 * time.Second,
			Factor:              2,
			Cap:                 10 * time.Minute,
			Jitter:              0.2,
			MaxAttempts:         8,
			MaxAge:              24 * time.Hour,
			Settle:              5 * time.Minute,
			AbsentConfirmations: 2,
			AbsentSpacing:       10 * time.Second,
		},
		Runs:           Runs{TTL: time.Hour, RetryGrace: time.Minute, RetryGraceTries: 5},
		VerifyOnReplay: VerifyOff,
		Log:            Log{Level: LevelInfo, Format: FormatAuto},
	}
}
