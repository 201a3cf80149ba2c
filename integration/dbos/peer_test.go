// Package dbos is what durable mutations are compared with: DBOS Transact with a PostgreSQL of its own, in whose workflows
// the one step is a POST.
package dbos

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// Where it sends to, and the PEM file of that upstream's roots.
const (
	targetVar = "DBOS_TARGET"
	rootsVar  = "DBOS_ROOTS"
)

// TestMain is that program, until its standard input ends.
func TestMain(*testing.M) {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// peer does workflows.
type peer struct {
	dbos   dbos.Context
	client *http.Client
	number atomic.Int64
}

func run() (err error) {
	text, err := os.ReadFile(os.Getenv(rootsVar))
	if err != nil {
		return fmt.Errorf("roots: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	dsn, stop, err := postgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	p := &peer{client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 256}}}
	if p.dbos, err = dbos.NewContext(context.Background(), dbos.Config{
		AppName: "bench", DatabaseURL: dsn, Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		return err
	}
	dbos.RegisterWorkflow(p.dbos, p.workflow)
	if err := dbos.Launch(p.dbos); err != nil {
		return err
	}
	s := httptest.NewServer(p)
	defer s.Close()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"proxy": s.URL}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return dbos.Shutdown(p.dbos, 10*time.Second)
}

// workflow has one step, which posts the body. Both the body and the answer are kept.
func (p *peer) workflow(ctx dbos.Context, body string) (int, error) {
	answer, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		target := os.Getenv(targetVar) + "/send/dbos-" + strconv.FormatInt(p.number.Add(1), 10)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := p.client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	})
	if err == nil && len(answer) != 1024 {
		err = fmt.Errorf("answered with %d bytes", len(answer))
	}
	return len(answer), err
}

// ServeHTTP lets clients do workflows for so long, and answers with how many were done.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	clients, err := strconv.Atoi(r.URL.Query().Get("clients"))
	d, badTime := time.ParseDuration(r.URL.Query().Get("for"))
	if err = errors.Join(err, badTime); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := `{"pad":"` + strings.Repeat("x", 1024-10) + `"}`
	problems := make([]error, clients)
	var done atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for i := range clients {
		all.Go(func() {
			for time.Since(begun) < d && problems[i] == nil {
				h, err := dbos.RunWorkflow(p.dbos, p.workflow, body)
				if err == nil {
					_, err = h.GetResult()
				}
				problems[i] = err
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprint(w, done.Load())
}

// postgres starts one with its own defaults, by a user that isn't root, in a folder that goes with it.
func postgres() (dsn string, stop func() error, err error) {
	initdb, postgres := program("initdb"), program("postgres")
	dir, err := os.MkdirTemp("", "dbos")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return "", nil, err
		}
		uid, badUser := strconv.Atoi(u.Uid)
		gid, badGroup := strconv.Atoi(u.Gid)
		if err := errors.Join(badUser, badGroup, os.Chown(dir, uid, gid)); err != nil {
			return "", nil, err
		}
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(dir, "data")
	made := exec.Command(initdb, "-D", data, "-A", "trust", "-U", "postgres")
	made.Dir, made.SysProcAttr = dir, as
	if out, err := made.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%w: %s", err, out)
	}
	var said bytes.Buffer
	server := exec.Command(postgres, "-D", data, "-k", dir, "-c", "listen_addresses=")
	server.Dir, server.SysProcAttr, server.Stderr = dir, as, &said
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		return errors.Join(server.Process.Signal(syscall.SIGINT), server.Wait(), os.RemoveAll(dir))
	}
	for begun := time.Now(); ; {
		c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432"))
		if err == nil {
			return "host=" + dir + " user=postgres dbname=postgres", stop, c.Close()
		}
		if time.Since(begun) > time.Minute {
			return "", nil, fmt.Errorf("PostgreSQL doesn't listen: %w: %s", errors.Join(err, stop()), &said)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// program is where Debian has it, if it isn't among the commands.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[0]
	}
	return name
}
