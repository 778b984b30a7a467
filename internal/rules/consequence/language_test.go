package consequence

import (
	"strings"
	"testing"
)

// spoken are labels of each language: inflected, compounded, with particles and
// prefixes, as buttons have them; and routine and neutral ones.
var spoken = map[string]map[Consequence][]string{
	"de": {
		Payment:              {"Jetzt bezahlen", "Zahlungspflichtig bestellen", "Zur Kasse", "Geld überweisen", "Überweisung"},
		Purchase:             {"In den Warenkorb", "Sofortkauf", "Abonnieren", "Vorbestellen"},
		AuthenticationChange: {"Anmelden", "Abmelden", "Neues Passwort setzen", "Melde dich an", "Erstanmeldung"},
		AccountRecovery:      {"Zurücksetzen", "Wiederherstellen"},
		SecurityChange:       {"Einstellungen", "Adresse ändern", "Profilbild", "Spracheinstellungen", "E-Mail-Adresse"},
		PermissionChange:     {"Blockieren", "Zugriff erlauben", "Benutzer sperren"},
		LegalAcceptance:      {"Ich stimme zu – zustimmen", "Akzeptieren", "AGB"},
		Publication:          {"Absenden", "Veröffentlichen", "Kommentieren", "Nachricht schreiben"},
		Destructive:          {"LÖSCHEN", "Entfernen", "Abbrechen", "Kündigen", "loeschen"},
		FileTransfer:         {"Herunterladen", "Datei hochladen", "Anhang"},
		Routine:              {"Weiter", "Fertig", "Überspringen"},
		Unknown:              {"Einzelheiten anzeigen", "Vorige Seite", "Und andere", "Kopieren"},
	},
	"fr": {
		Payment: {"Payer maintenant", "Paiement", "Virement"}, Purchase: {"Acheter", "Ajouter au panier", "S'abonner"},
		AuthenticationChange: {"Se connecter", "Déconnexion", "Mot de passe", "S'inscrire"}, AccountRecovery: {"Réinitialiser", "Oublié ?"},
		SecurityChange: {"Modifier", "Paramètres", "Mon compte", "Préférences"}, PermissionChange: {"Autoriser", "Bloquer"},
		LegalAcceptance: {"J'accepte", "Accepter"}, Publication: {"Publier", "Envoyer", "Répondre", "Partager"},
		Destructive: {"Supprimer", "Annuler", "Résilier"}, FileTransfer: {"Télécharger", "Pièce jointe"},
		Routine: {"Continuer", "Suivant", "J'ai compris"}, Unknown: {"Vidéo", "Comparer", "Page précédente", "Entre deux"},
	},
	"es": {
		Payment: {"Pagar ahora", "Tarjeta", "Transferencia"}, Purchase: {"Comprar", "Añadir a la cesta", "Suscribirse"},
		AuthenticationChange: {"Iniciar sesión", "Cerrar sesión", "Contraseña"}, AccountRecovery: {"Restablecer", "¿Olvidaste…?"},
		SecurityChange: {"Configuración", "Editar", "Mi cuenta"}, PermissionChange: {"Permitir", "Bloquear"},
		LegalAcceptance: {"Aceptar"}, Publication: {"Publicar", "Enviar", "Compartir", "Responder"},
		Destructive: {"Eliminar", "Borrar", "Cancelar"}, FileTransfer: {"Descargar", "Subir archivo"},
		Routine: {"Continuar", "Siguiente", "Omitir"}, Unknown: {"Página", "Ventana nueva", "Borrador", "Pie de foto", "Para ti"},
	},
	"pt": {
		Payment: {"Pagar", "Cartão", "Boleto"}, Purchase: {"Comprar", "Adicionar ao carrinho", "Assinar"},
		AuthenticationChange: {"Entrar", "Sair", "Senha", "Palavra-passe"}, AccountRecovery: {"Redefinir", "Esqueceu?"},
		SecurityChange: {"Configurações", "Alterar", "Definições"}, PermissionChange: {"Bloquear", "Permitir"},
		LegalAcceptance: {"Concordo", "Aceitar"}, Publication: {"Publicar", "Enviar", "Compartilhar", "Partilhar"},
		Destructive: {"Excluir", "Apagar", "Cancelar", "Remover"}, FileTransfer: {"Baixar", "Anexar"},
		Routine: {"Continuar", "Próximo", "Pular"}, Unknown: {"Para", "Parâmetro", "Próxima página"},
	},
	"it": {
		Payment: {"Paga ora", "Bonifico"}, Purchase: {"Acquista", "Aggiungi al carrello", "Abbonati"},
		AuthenticationChange: {"Accedi", "Esci", "Registrati"}, AccountRecovery: {"Reimposta", "Dimenticato?"},
		SecurityChange: {"Impostazioni", "Modifica"}, PermissionChange: {"Consenti", "Blocca"}, LegalAcceptance: {"Accetto"},
		Publication: {"Pubblica", "Invia", "Condividi", "Rispondi"}, Destructive: {"Elimina", "Annulla", "Rimuovi"},
		FileTransfer: {"Scarica", "Allega"}, Routine: {"Continua", "Avanti"}, Unknown: {"Pagina", "Dettagli", "Fine"},
	},
	"nl": {
		Payment: {"Nu betalen", "Afrekenen", "Betaling"}, Purchase: {"In winkelwagen", "Bestellen", "Koop nu"},
		AuthenticationChange: {"Inloggen", "Aanmelden", "Wachtwoord", "Uitloggen"}, AccountRecovery: {"Herstellen", "Vergeten?"},
		SecurityChange: {"Instellingen", "Wijzigen", "Taalinstellingen"}, PermissionChange: {"Toestaan", "Blokkeren"},
		LegalAcceptance: {"Akkoord", "Accepteren"}, Publication: {"Verzenden", "Publiceren", "Delen"},
		Destructive: {"Verwijderen", "Annuleren"}, FileTransfer: {"Downloaden", "Bijlage"}, Routine: {"Doorgaan", "Volgende"},
		Unknown: {"Geldig", "Pagina", "Zoeken", "Publiek"},
	},
	"pl": {
		Payment: {"Zapłać teraz", "Płatność", "ZAPŁAĆ", "zaplac", "Przelew"}, Purchase: {"Kup teraz", "Dodaj do koszyka", "Zamówienie"},
		AuthenticationChange: {"Zaloguj się", "Wyloguj", "Hasło", "Zarejestruj się"}, AccountRecovery: {"Odzyskaj", "Przywróć"},
		SecurityChange: {"Ustawienia", "Zmień", "Edytuj"}, PermissionChange: {"Zezwól", "Zablokuj"}, LegalAcceptance: {"Akceptuję", "Zgadzam się"},
		Publication: {"Opublikuj", "Wyślij", "Udostępnij", "Odpowiedz"}, Destructive: {"Usuń", "Anuluj"},
		FileTransfer: {"Pobierz", "Załącznik"}, Routine: {"Dalej", "Gotowe"}, Unknown: {"Strona", "Szczegóły", "Platforma"},
	},
	"ru": {
		Payment: {"Оплатить", "Оплата картой", "Платёж"}, Purchase: {"Купить", "В корзину", "Заказать"},
		AuthenticationChange: {"Войти", "Выход", "Пароль", "Зарегистрироваться"}, AccountRecovery: {"Сбросить", "Восстановить"},
		SecurityChange: {"Настройки", "Изменить", "Редактировать"}, PermissionChange: {"Разрешить", "Заблокировать"},
		LegalAcceptance: {"Принимаю", "Согласен"}, Publication: {"Опубликовать", "Отправить", "Поделиться", "Ответить"},
		Destructive: {"Удалить", "Отмена", "УДАЛЕНИЕ"}, FileTransfer: {"Скачать", "Прикрепить"}, Routine: {"Продолжить", "Далее"},
		Unknown: {"Подробнее", "Страница", "Сортировать", "Сообщество"},
	},
	"tr": {
		Payment: {"Ödeme yap", "Ödemeyi tamamla", "Kredi kartı"}, Purchase: {"Satın al", "Sepete ekle"},
		AuthenticationChange: {"Giriş yap", "GİRİŞ YAP", "Çıkış", "Şifre"}, AccountRecovery: {"Sıfırla", "Unuttum"},
		SecurityChange: {"Ayarlar", "Düzenle", "Hesabım"}, PermissionChange: {"İzin ver", "Engelle"}, LegalAcceptance: {"Kabul ediyorum"},
		Publication: {"Gönder", "Paylaş", "Yayımla"}, Destructive: {"Sil", "SİL", "KALDIR", "İptal"}, FileTransfer: {"İndir", "Dosya yükle"},
		Routine: {"Devam", "İleri"}, Unknown: {"Ayrıntılar", "Sayfa", "Sessiz"},
	},
	"ar": {
		Payment: {"ادفع الآن", "الدفع", "بالبطاقة"}, Purchase: {"شراء", "أضف إلى السلة", "والاشتراك"},
		AuthenticationChange: {"تسجيل الدخول", "خروج", "كلمة المرور"}, AccountRecovery: {"نسيت؟", "استعادة"},
		SecurityChange: {"الإعدادات", "تعديل", "حسابي"}, PermissionChange: {"السماح", "حظر"}, LegalAcceptance: {"أوافق", "الشروط"},
		Publication: {"نشر", "إرسال", "مشاركة"}, Destructive: {"حذف", "حـــذف", "إلغاء", "والحذف", "حَذْف"}, FileTransfer: {"تنزيل", "مرفقات"},
		Routine: {"التالي", "استمرار"}, Unknown: {"الغرب", "الصفحة", "تفاصيل"},
	},
	"zh": {
		Payment: {"立即支付", "去付款", "結帳"}, Purchase: {"加入购物车", "購買", "提交订单"}, AuthenticationChange: {"登录", "使用密码登录", "註冊"},
		AccountRecovery: {"忘记了？", "重置"}, SecurityChange: {"设置", "修改", "编辑"}, PermissionChange: {"允许", "屏蔽"},
		LegalAcceptance: {"我同意", "接受"}, Publication: {"发布", "傳送", "回复"}, Destructive: {"删除", "取消", "移除"},
		FileTransfer: {"下载", "上傳"}, Routine: {"继续", "下一步"}, Unknown: {"详情", "上一页", "排序"},
	},
	"ja": {
		Payment: {"支払う", "お支払いへ進む", "Amazonで決済"}, Purchase: {"購入する", "カートに入れる", "ご注文"},
		AuthenticationChange: {"ログイン", "ログアウトする", "新規登録", "ﾛｸﾞｲﾝ"}, AccountRecovery: {"お忘れの方", "リセット"},
		SecurityChange: {"設定", "変更する", "編集"}, PermissionChange: {"許可する", "ブロック"}, LegalAcceptance: {"同意する"},
		Publication: {"送信", "投稿する", "返信"}, Destructive: {"削除", "キャンセル"}, FileTransfer: {"ダウンロード", "添付"},
		Routine: {"次へ", "続ける"}, Unknown: {"詳細", "前のページ", "検索"},
	},
	"ko": {
		Payment: {"결제하기", "카드로 결제", "송금"}, Purchase: {"구매하기", "장바구니에 담기", "주문을"}, AuthenticationChange: {"로그인", "비밀번호", "Google로 로그인"},
		AccountRecovery: {"잊으셨나요", "초기화"}, SecurityChange: {"설정", "변경", "편집하기"}, PermissionChange: {"허용", "차단하기"},
		LegalAcceptance: {"동의합니다"}, Publication: {"보내기", "공유하기", "댓글"}, Destructive: {"삭제", "취소", "삭제하시겠습니까"},
		FileTransfer: {"다운로드", "첨부파일"}, Routine: {"계속", "다음"}, Unknown: {"자세히", "이전 페이지", "정렬"},
	},
}

func languageRows() []expectation {
	var out []expectation
	for lang, classes := range spoken {
		for want, labels := range classes {
			for _, l := range labels {
				out = append(out, expectation{"language " + lang, click(l), want})
			}
		}
	}
	return out
}

// CLS-06: each vocabulary has terms for every consequence, says where they come
// from, and says nothing that the reader of the files does not know.
func TestVocabularies(t *testing.T) {
	files, err := words.ReadDir("words")
	if err != nil || len(files) != len(spoken)+1 {
		t.Fatalf("%d vocabularies, %v", len(files), err)
	}
	for _, f := range files {
		text, err := words.ReadFile("words/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		v := newTerms()
		if err := v.language(string(text)); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		var have mask
		for _, n := range v.nodes {
			have |= n.exact | n.prefix | n.suffix | n.inside
		}
		for _, c := range All() {
			if c.Named() && have&bit(c) == 0 {
				t.Errorf("%s has no term for %s", f.Name(), c)
			}
		}
		if len(v.routine) < 5 {
			t.Errorf("%s has %d routine labels", f.Name(), len(v.routine))
		}
		if !strings.Contains(strings.ReplaceAll(string(text), "\n# ", " "), "chosen by the authors from general knowledge") {
			t.Errorf("%s does not say where its terms come from", f.Name())
		}
		// What is routine in one language is named in none.
		for label := range v.routine {
			if m := standard.terms.find(label) &^ segment; m != 0 {
				t.Errorf("%s: routine %q is %s", f.Name(), label, m.first())
			}
		}
	}
}

// CLS-04: a mistake in a vocabulary is found, not passed over.
func TestBrokenVocabulary(t *testing.T) {
	for _, text := range []string{"payment pay", "payment: pay,, bill", "paiment: pay", "inflect: german", "payment: ***", "unknown: x", "routine: "} {
		if err := newTerms().language(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
