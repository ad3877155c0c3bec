//go:build mage

// The project's commands: build, demo, tests and lint. Run as `go tool mage <target>`, here or in CI.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/build"
	"github.com/magefile/mage/mg"
	"github.com/magefile/mage/sh"
)

const (
	golangciLint        = "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
	golangciLintVersion = "v2.15.0"
)

func init() {
	// The SDK looks for plugin.json in src/, where ours is only a link to the real one.
	_ = build.SetBeforeBuildCallback(func(cfg build.Config) (build.Config, error) {
		cfg.PluginJSONPath = "."
		return cfg, nil
	})
	// To stamp a binary Go asks git, which refuses a checkout that another user owns, as in many a container.
	_ = os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
}

// Build builds the plugin's backend for this platform into dist/.
func Build() error {
	mg.SerialDeps(pluginJSON)
	return build.Build{}.Backend()
}

// BuildAll builds the plugin's backend for every platform that Grafana runs on.
func BuildAll() {
	mg.SerialDeps(pluginJSON)
	platforms := build.Build{}
	// In turn: side by side they would write the same manifest, and need the memory of six linkers.
	mg.SerialDeps(platforms.Linux, platforms.LinuxARM, platforms.LinuxARM64, platforms.Darwin, platforms.DarwinARM64, platforms.Windows)
}

// Demo builds the plugin and shows it at work on an embedded AMP. Flags after it are the demo's own: see `demo -help`.
func Demo() error {
	mg.SerialDeps(Build)
	demo := filepath.Join(".tools", "demo")
	if err := sh.RunV("go", "build", "-o", demo, "./pkg/demo"); err != nil {
		return err
	}
	if err := sh.RunV(demo, argsAfter("demo")...); err != nil {
		return err
	}
	// mage would take the demo's flags for its next targets.
	os.Exit(0)
	return nil
}

// Check runs every test and lint, and tells at the end which ones failed.
func Check() error {
	return runAll(
		step{"go.mod is tidy", tidy},
		step{"licenses", licenses},
		step{"lint", Lint},
		step{"frontend", frontend},
		step{"test", Test},
	)
}

// Test runs the Go tests, with the race detector wherever there is a C compiler for it.
func Test() error {
	args := []string{"test"}
	if cgo, err := sh.Output("go", "env", "CGO_ENABLED"); err == nil && cgo == "1" {
		args = append(args, "-race")
	} else {
		fmt.Println("no C compiler: testing without the race detector")
	}
	return sh.RunV("go", append(args, "./pkg/...")...)
}

// Lint checks formatting, go vet, import directions and style (.golangci.yml).
func Lint() error {
	linter, err := installedLinter()
	if err != nil {
		return err
	}
	return sh.RunV(linter, "run", ".", "./pkg/...")
}

// Clean removes what was built.
func Clean() error {
	return errors.Join(sh.Rm("dist"), sh.Rm("coverage"))
}

// pluginJSON writes dist/plugin.json, so that dist/ is a plugin as soon as the backend is built.
func pluginJSON() error {
	var pkg struct{ Version string }
	raw, err := os.ReadFile("package.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &pkg); err != nil {
		return fmt.Errorf("package.json: %w", err)
	}
	plugin, err := os.ReadFile("plugin.json")
	if err != nil {
		return err
	}
	filled := strings.NewReplacer("%VERSION%", pkg.Version, "%TODAY%", time.Now().UTC().Format(time.DateOnly)).Replace(string(plugin))
	return errors.Join(os.MkdirAll("dist", 0o755), os.WriteFile("dist/plugin.json", []byte(filled), 0o644))
}

// argsAfter returns the command line after a target's name.
func argsAfter(target string) []string {
	i := slices.IndexFunc(os.Args, func(arg string) bool { return strings.EqualFold(arg, target) })
	return os.Args[i+1:]
}

// installedLinter returns the path of the pinned golangci-lint. It is built on first use and kept out of go.mod,
// where its dependencies would mix with those of the plugin.
func installedLinter() (string, error) {
	dir, err := filepath.Abs(filepath.Join(".tools", "golangci-lint-"+golangciLintVersion))
	if err != nil {
		return "", err
	}
	linter := filepath.Join(dir, "golangci-lint")
	if _, err := exec.LookPath(linter); err == nil {
		return linter, nil
	}
	fmt.Printf("building golangci-lint %s: once, takes a few minutes\n", golangciLintVersion)
	return linter, sh.RunWithV(map[string]string{"GOBIN": dir}, "go", "install", golangciLint+"@"+golangciLintVersion)
}

func tidy() error {
	return sh.RunV("go", "mod", "tidy", "-diff")
}

// copyleft is how the GPL, LGPL and AGPL spell their title; licenses that only mention them don't use capitals.
var copyleft = regexp.MustCompile(`GNU (AFFERO |LESSER )?GENERAL PUBLIC LICENSE`)

// licenses refuses copyleft, or no license at all, in what the plugin's binary is linked from.
func licenses() error {
	dirs, err := sh.Output("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Dir}}{{end}}{{end}}", "./pkg")
	if err != nil {
		return err
	}
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Split(dirs, "\n"))))
	var refused []error
	for _, dir := range modules {
		refused = append(refused, license(dir))
	}
	fmt.Printf("%d modules\n", len(modules))
	return errors.Join(refused...)
}

func license(moduleDir string) error {
	files, err := filepath.Glob(filepath.Join(moduleDir, "[LC][IO][CP][EY]*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no license: %s", moduleDir)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if copyleft.Match(text) {
			return fmt.Errorf("copyleft: %s", file)
		}
	}
	return nil
}

type step struct {
	name string
	run  func() error
}

// runAll runs every step even when one fails: a change's author wants the whole list at once.
func runAll(steps ...step) error {
	var failed []string
	for _, s := range steps {
		fmt.Printf("\n== %s\n", s.name)
		start := time.Now()
		err := s.run()
		took := time.Since(start).Round(100 * time.Millisecond)
		if err != nil {
			failed = append(failed, s.name)
			fmt.Printf("== %s: FAILED after %s: %v\n", s.name, took, err)
			continue
		}
		fmt.Printf("== %s: passed in %s\n", s.name, took)
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// frontend installs what package-lock.json names, and checks, tests and builds the editors.
func frontend() error {
	if err := sh.RunV("npm", "ci", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	for _, script := range []string{"typecheck", "lint", "test:ci", "build"} {
		if err := sh.RunV("npm", "run", script); err != nil {
			return err
		}
	}
	return nil
}
