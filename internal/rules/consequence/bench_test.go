package consequence

import (
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// samples are labels of a few languages, gated and not.
var samples = map[string][]string{
	"english": {"Continue", "Delete my account", "Show details", "Previous page", "Add to cart", "Sort by date"},
	"german":  {"Weiter", "Konto löschen", "Einzelheiten anzeigen", "Vorige Seite", "In den Warenkorb", "Nach Datum"},
	"russian": {"Далее", "Удалить учётную запись", "Показать подробности", "Предыдущая страница", "В корзину", "По дате"},
	"korean":  {"계속", "계정 삭제", "자세히 보기", "이전 페이지", "장바구니에 담기", "날짜순 정렬"},
	"chinese": {"继续", "删除账号", "显示详情", "上一页", "加入购物车", "按日期排序"},
}

// BenchmarkClassify measures what all vocabularies cost beside the English one
// alone, per label.
func BenchmarkClassify(b *testing.B) {
	english := newTerms()
	text, err := words.ReadFile("words/en.txt")
	if err != nil {
		b.Fatal(err)
	}
	if err := english.language(string(text)); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		with *classifier
	}{{"english-only", &classifier{terms: english, read: readings}}, {"all", standard}} {
		for _, lang := range []string{"english", "german", "russian", "korean", "chinese"} {
			b.Run(c.name+"/"+lang, func(b *testing.B) {
				texts, i := samples[lang], 0
				for b.Loop() {
					c.with.classify(Subject{Act: "click", Role: "button", Labels: texts[i%len(texts) : i%len(texts)+1], Field: observe.FieldNone})
					i++
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load()
	}
}

// BenchmarkLargest is the most that one subject can cost.
func BenchmarkLargest(b *testing.B) {
	s := Subject{Act: "click", Role: "button", Field: observe.FieldNone}
	for range maxAll / maxText {
		s.Labels = append(s.Labels, strings.Repeat("\u202eудалить\u202c \u2006가", 1+maxText/20))
	}
	for b.Loop() {
		Classify(s)
	}
}
