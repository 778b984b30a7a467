package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
)

// label is one labelled text.
type label struct {
	lang, key, text string
	class           consequence.Consequence // Unknown is neutral
	tuning          bool
}

// languages are those with a vocabulary, each with the names the sets have for
// it.
var languages = []struct {
	lang  string
	names []string
}{
	{"en", []string{"en", "en_US"}},
	{"de", []string{"de", "de_DE"}},
	{"fr", []string{"fr", "fr_FR"}},
	{"es", []string{"es", "es_ES"}},
	{"pt", []string{"pt", "pt-br", "pt-BR", "pt_PT", "pt_BR"}},
	{"it", []string{"it", "it_IT"}},
	{"nl", []string{"nl", "nl_NL"}},
	{"pl", []string{"pl", "pl_PL"}},
	{"ru", []string{"ru", "ru_RU"}},
	{"tr", []string{"tr", "tr_TR"}},
	{"ar", []string{"ar", "ar_SA"}},
	{"zh", []string{"zh", "zh-TW", "zh-hans", "zh-hant", "zh_CN", "zh_TW"}},
	{"ja", []string{"ja", "ja_JP"}},
	{"ko", []string{"ko", "ko_KR"}},
}

func languageOf(name string) string {
	for _, l := range languages {
		if slices.Contains(l.names, name) {
			return l.lang
		}
	}
	return ""
}

// set is one program whose labels are read.
type set struct {
	name  string
	debs  []string // Debian packages that hold it
	files []string // patterns below the unpacked packages; the language is in the path
	read  func(path, lang string) (messages, error)
}

var sets = []set{
	{"mediawiki", []string{"mediawiki"}, []string{
		"usr/share/mediawiki/languages/i18n/*.json",
		"usr/share/mediawiki/extensions-core/*/i18n/*.json",
	}, readJSON},
	{"redmine", []string{"redmine"}, []string{"usr/share/redmine/config/locales/*.yml"}, readYAML},
	{"roundcube", []string{"roundcube-core"}, []string{"usr/share/roundcube/program/localization/*/labels.inc"}, readPHP},
	{"tryton", []string{"tryton-modules-account-invoice", "tryton-modules-account-payment", "tryton-modules-purchase", "tryton-modules-sale"},
		[]string{"usr/lib/python3/dist-packages/trytond/modules/*/locale/*.po"}, readPO},
}

// miniflux is read from the module cache; it is no dependency.
const miniflux = "miniflux.app/v2@v2.3.5"

// collect returns the labels of all sets that keys.go gives a class.
func collect(ctx context.Context, cache, temp string) ([]label, error) {
	c := collector{texts: map[string]map[string]string{}}
	for _, s := range sets {
		root := filepath.Join(temp, s.name)
		for _, d := range s.debs {
			if err := unpack(ctx, cache, d, root); err != nil {
				return nil, err
			}
		}
		if err := c.files(s.name, root, s.files, s.read); err != nil {
			return nil, err
		}
	}
	dir, err := module(ctx, miniflux)
	if err != nil {
		return nil, err
	}
	if err := c.files("miniflux", dir, []string{"internal/locale/translations/*.json"}, readJSON); err != nil {
		return nil, err
	}
	return c.labels(), nil
}

// collector gathers messages: by set and key, then by name of language.
type collector struct {
	texts map[string]map[string]string
}

func (c *collector) files(name, root string, patterns []string, read func(path, lang string) (messages, error)) error {
	found := 0
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(root, p))
		if err != nil {
			return err
		}
		for _, f := range files {
			lang := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
			if filepath.Ext(f) == ".inc" {
				lang = filepath.Base(filepath.Dir(f))
			}
			if st, err := os.Lstat(f); languageOf(lang) == "" || err != nil || !st.Mode().IsRegular() {
				continue
			}
			m, err := read(f, lang)
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(f), err)
			}
			for lang, texts := range m {
				found += len(texts)
				for k, text := range texts {
					key := name + ":" + k
					if c.texts[key] == nil {
						c.texts[key] = map[string]string{}
					}
					c.texts[key][lang] = text
				}
			}
		}
	}
	if found == 0 {
		return fmt.Errorf("%s has no messages where they are expected", name)
	}
	return nil
}

// labels gives the messages their class. What is longer than a label, has
// places for other text, or was not translated is left out, and so is a text
// that the same class has already in that language.
func (c *collector) labels() []label {
	var out []label
	seen := map[string]bool{}
	keys := make([]string, 0, len(c.texts))
	for k := range c.texts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, key := range keys {
		class, ok := classOf(key)
		if !ok {
			continue
		}
		english := cmp.Or(c.texts[key]["en"], c.texts[key]["en_US"])
		for name, text := range c.texts[key] {
			lang := languageOf(name)
			text = strings.TrimSpace(text)
			id := lang + "\x00" + string(class) + "\x00" + strings.ToLower(text)
			if !isLabel(text) || lang != "en" && text == english || seen[id] {
				continue
			}
			seen[id] = true
			out = append(out, label{lang: lang, key: key, text: text, class: class, tuning: tuning(key)})
		}
	}
	slices.SortFunc(out, func(a, b label) int {
		return cmp.Or(cmp.Compare(a.lang, b.lang), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	return out
}

func isLabel(text string) bool {
	return text != "" && len([]rune(text)) <= 48 && text != "-" && !strings.ContainsAny(text, "<>[{%$#\n|")
}

// tuning halves the keys, so that all languages of a key are in one half.
func tuning(key string) bool {
	h := fnv.New32a()
	h.Write([]byte(key))
	return h.Sum32()>>16&1 == 0
}

// unpack puts a Debian package's files under root. The package file is kept in
// the cache.
func unpack(ctx context.Context, cache, name, root string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	file, err := cached(cache, name)
	if err != nil {
		return err
	}
	if file == "" {
		tmp, err := os.MkdirTemp(cache, "fetch-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if err := command(ctx, tmp, "apt-get", "-q", "download", name); err != nil {
			return fmt.Errorf("package %s: %w; its package file can also be put into %s", name, err, cache)
		}
		loaded, err := cached(tmp, name)
		if err != nil || loaded == "" {
			return fmt.Errorf("apt-get loaded no package file of %s", name)
		}
		file = filepath.Join(cache, filepath.Base(loaded))
		if err := os.Rename(loaded, file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	return command(ctx, root, "dpkg", "-x", file, root)
}

func cached(dir, name string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	slices.Sort(files)
	return files[len(files)-1], nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// module returns the folder of a module in the module cache.
func module(ctx context.Context, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = os.TempDir() // outside this module, whose go.mod is not concerned
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil || m.Error != "" || err != nil {
		return "", fmt.Errorf("module %s: %s %w", path, m.Error, err)
	}
	return m.Dir, nil
}
