package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stage is one way of trying.
type stage struct {
	name string
	run  func(context.Context, options) part
}

// stages are run in this order: the cheap ones first.
var stages = []stage{
	{"model", modelStage},
	{"histories", historiesStage},
	{"rivals", rivalsStage},
	{"lies", liesStage},
	{"crashes", crashesStage},
	{"matrix", matrixStage},
	{"bugs", bugsStage},
}

// options are what the command line says.
type options struct {
	// root is the repository, in which everything is run.
	root string
	// histories and seed are of the stage histories.
	histories int
	seed      uint64
	// within is how long that stage may take; 0 for as long as it takes.
	within time.Duration
	match  *regexp.Regexp
	write  bool
	// cells is a file that keeps what came of the cells of the stage matrix; "" for none.
	cells string
	// progress gets a line now and then.
	progress io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

// run runs the stages that the arguments name, all by default.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o := options{root: ".", progress: progress}
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.IntVar(&o.histories, "n", 100_000, "how many `histories` a stage goes through")
	match := flags.String("match", "", "only bugs whose name matches the `expression`")
	flags.Uint64Var(&o.seed, "seed", 1, "the seed of the first history, and of what is drawn")
	flags.DurationVar(&o.within, "within", 0, "how long the stage histories goes on at most; it tells how many it came through")
	flags.StringVar(&o.cells, "cells", "", "a `file` of what came of the cells of the stage matrix, to go on after an interruption")
	flags.BoolVar(&o.write, "write", false, "write the report into docs/proof.md")
	names, err := parse(flags, args)
	if err != nil {
		return err
	}
	if o.match, err = regexp.Compile(*match); err != nil {
		return fmt.Errorf("-match: %w", err)
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	begun := time.Now()
	var parts []part
	for _, s := range chosen {
		started := time.Now()
		p := s.run(ctx, o)
		p.stage, p.took = s.name, time.Since(started)
		if err := p.print(out); err != nil {
			return err
		}
		parts = append(parts, p)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted in stage %s: %w", s.name, err)
		}
	}
	if o.write {
		if err := write(o, parts, time.Since(begun)); err != nil {
			return err
		}
	}
	return verdict(parts)
}

// parse reads flags before, between and after the names of stages.
func parse(flags *flag.FlagSet, args []string) (names []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) == 0 {
			return names, nil
		}
		names, args = append(names, args[0]), args[1:]
	}
}

// choose finds the stages by their names.
func choose(names []string) ([]stage, error) {
	if len(names) == 0 {
		return stages, nil
	}
	var chosen []stage
	for _, name := range names {
		i := slices.IndexFunc(stages, func(s stage) bool { return s.name == name })
		if i < 0 {
			var all []string
			for _, s := range stages {
				all = append(all, s.name)
			}
			return nil, fmt.Errorf("there is no stage %q; the stages are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, stages[i])
	}
	return chosen, nil
}

// verdict is an error if a stage found what it should not.
func verdict(parts []part) error {
	var bad []error
	for _, p := range parts {
		for _, b := range p.bad {
			bad = append(bad, fmt.Errorf("%s: %s", p.stage, b))
		}
	}
	return errors.Join(bad...)
}
