package main

import (
	"path"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
)

// rule gives messages a class by their key: what the control with that label
// does, whatever words it uses. The patterns are those of path.Match; the first
// rule with a pattern that matches wins. What no pattern matches is not
// measured: most messages are sentences, or labels whose act depends on where
// they stand.
type rule struct {
	set      string
	class    consequence.Consequence // Unknown is neutral: reading, moving about, sorting
	patterns string
}

var rules = []rule{
	{"mediawiki", consequence.AuthenticationChange, `login userlogin logout userlogout pt-login pt-login-button pt-login-continue-button pt-userlogout
		pt-createaccount createaccount createacct-submit createacct-another-submit changepassword resetpass_submit
		resetpass-submit-loggedin resetpass_header nav-login-createaccount yourpassword userlogin-yourpassword
		createacct-yourpassword-ph userlogin-yourpassword-ph yourpasswordagain createacct-yourpasswordagain oldpassword
		newpassword retypenew login-security changecredentials changecredentials-submit removecredentials
		removecredentials-submit botpasswords botpasswords-createnew botpasswords-editexisting loginreqlink
		userlogin-createanother oathauth-login oathauth-verify-title oathauth-enable oathauth-disable
		oathauth-disable-page-title oathauth-disable-for-user`},
	{"mediawiki", consequence.AccountRecovery, `passwordreset mailmypassword userlogin-resetpassword-link botpasswords-label-resetpassword resettokens
		resettokens-resetbutton undeletebtn undeletepage undeletelink restorelink1 undelete undeletedpage`},
	{"mediawiki", consequence.SecurityChange, `preferences mypreferences changeemail changeemail-submit emailconfirmlink edit skin-view-edit editsection
		editlink editold editpage edit-local rev-delundel revdel-restore vector-view-edit tags-edit tags-edit-title
		prefs-edit prefs-email prefs-setemail prefs-changeemail prefs-resetpass youremail userlogin-yourname yourname
		username createacct-emailrequired protect_change pagelanguage specialmute mute-preferences editthispage
		history-edit-tags prefs-editwatchlist editwatchlist watchlistedit-normal-title userrights-changeable-col
		authmanager-email-label authmanager-email-help`},
	{"mediawiki", consequence.PermissionChange, `block blockip blocklink ipbsubmit blockip-legend unblock unblocklink unblockip ipusubmit linkaccounts
		linkaccounts-submit unlinkaccounts log-action-filter-block-block log-action-filter-block-unblock right-block
		action-block protect skin-action-protect vector-action-protect unprotect skin-action-unprotect
		vector-action-unprotect protectthispage protectpage userrights userrights-user-editname saveusergroups
		userrights-editusergroup`},
	{"mediawiki", consequence.Publication, `publishpage publishchanges publishpage-start publishchanges-start emailsend emailuser email-legend
		feedback-submit feedback-dialog-title htmlform-submit pagelang-submit feedback-message
		visualeditor-savedialog-label-publish`},
	{"mediawiki", consequence.Destructive, `delete deletepage deletethispage vector-action-delete skin-action-delete deletepage-submit cancel
		resetpass-submit-cancel botpasswords-label-cancel botpasswords-label-delete tags-delete tags-delete-title
		tags-deactivate tags-deactivate-title tags-deactivate-submit mw-widgets-abandonedit-discard
		mw-widgets-table-row-delete tags-edit-remove tags-edit-remove-all-tags htmlform-cloner-delete feedback-cancel
		delete-legend deleteconfirm action-delete right-delete right-deleterevision filedelete-submit filedelete-legend
		removewatch log-action-filter-delete-delete upload-dialog-button-cancel watchlistedit-clear-submit
		watchlistedit-normal-submit watchlistedit-raw-submit visualeditor-dialog-action-cancel
		visualeditor-dialog-action-remove ooui-dialog-message-reject ooui-outline-control-remove ooui-item-remove
		wikieditor-toolbar-tool-*-cancel nuke-submit-delete interwiki_delete templatedata-modal-button-cancel`},
	{"mediawiki", consequence.FileTransfer, `upload uploadbtn import importinterwiki import-interwiki-submit import-upload import-submit export export-submit
		export-download upload-dialog-button-upload upload-dialog-title action-upload right-upload right-import
		log-action-filter-upload-upload multimediaviewer-download-link multimediaviewer-download-original-button-name
		gadgets-export reupload download filehist-download visualeditor-dialog-media-upload uploadnewversion-linktext`},
	{"mediawiki", consequence.Unknown, `sunday monday tuesday wednesday thursday friday saturday january february march april may_long june july august
		september october november december sun mon tue wed thu fri sat help search searchbutton history history_short
		navigation mainpage mainpage-description randompage randompage-url recentchanges newpages allpages categories
		toc showtoc hidetoc next last cur page_first page_last histfirst histlast namespaces variants views toolbox
		print printableversion pageinfo pageinfo-toolboxlink viewsource viewsourcelink skin-view-history skin-view-view
		sort-descending sort-ascending sort-initial collapsible-collapse collapsible-expand nstab-main nstab-special
		nstab-image nstab-template nstab-help nstab-category about aboutpage disclaimers portal otherlanguages
		navigation-heading summary subject preview showpreview ok go searcharticle jumpto actions currentrev
		previousrevision nextrevision currentrevisionlink yourtext yourdiff underline-always underline-never
		mediastatistics-header-* special-characters-group-* special-characters-title-* period-am period-pm
		tags-active-yes tags-active-no confirmable-yes confirmable-no htmlform-yes htmlform-no
		htmlform-selectorother-other compare-page1 compare-page2 compare-rev1 compare-rev2 date-range-from date-range-to
		statistics statistics-articles statistics-pages specialpages blanknamespace powersearch-toggleall
		powersearch-togglenone watchlist-hide watchlist-show namespace invert filehist-datetime filehist-dimensions
		filehist-thumb file-info-size imagelinks monthsall limitall longpages shortpages ancientpages lonelypages
		wantedpages mostcategories unusedimages randomincategory listusers activeusers version version-software
		version-license minutes hours days size-bytes table_pager_next table_pager_prev table_pager_first
		table_pager_last brackets exif-orientation exif-colorspace-* exif-orientation-*`},

	{"redmine", consequence.AuthenticationChange, `button_login label_login label_logout label_register button_change_password field_password field_new_password
		field_password_confirmation field_current_password label_password_required label_authentication
		label_ldap_authentication field_twofa_code`},
	{"redmine", consequence.AccountRecovery, `label_password_lost button_reset`},
	{"redmine", consequence.SecurityChange, `label_settings label_my_account label_preferences button_edit button_change button_update label_profile
		label_email_address_add label_email_address_plural button_edit_section label_bulk_edit
		label_bulk_edit_selected_issues label_change_properties label_change_status label_enable_notifications
		label_disable_notifications permission_edit_* permission_manage_* field_mail label_wiki_edit
		label_project_settings field_mail_notification label_member_management`},
	{"redmine", consequence.PermissionChange, `label_permissions label_permissions_report label_role_and_permissions label_fields_permissions
		permission_protect_wiki_pages`},
	{"redmine", consequence.Publication, `button_submit button_reply label_comment_add label_send_test_email permission_add_messages
		permission_comment_news label_message_new label_message_plural label_reply_plural label_board label_board_plural
		label_comment_plural label_send_information field_comments`},
	{"redmine", consequence.Destructive, `button_delete button_cancel button_archive button_delete_my_account label_attachment_delete label_comment_delete
		label_relation_delete permission_delete_* button_project_bookmark_delete label_delete_link_to_subtask`},
	{"redmine", consequence.FileTransfer, `button_download button_export button_import label_import_issues label_import_time_entries label_import_users
		label_download_all_attachments label_no_preview_download permission_import_* permission_export_*
		label_select_file_to_import`},
	{"redmine", consequence.Unknown, `label_today label_yesterday label_tomorrow label_this_week label_last_week label_next_week label_this_month
		label_last_month label_next_month label_this_year label_home label_search label_history label_help label_sort
		label_sort_* label_next label_previous label_list label_date label_calendar button_view button_list button_sort
		button_back button_show button_hide button_check_all button_uncheck_all button_expand_all button_collapse_all
		label_all label_any label_none label_nobody date.day_names.* date.abbr_day_names.* date.month_names.*
		date.abbr_month_names.* label_overview label_statistics label_details label_table_of_contents label_font_*
		label_comma_char label_semi_colon_char label_quote_char label_double_quote_char label_theme label_project
		label_project_plural label_project_all label_version label_version_plural label_year label_month label_week
		label_day_plural label_age label_example label_display label_ascending label_descending label_contains
		label_between label_equals label_ago label_in label_total label_activity label_roadmap label_gantt label_tracker
		label_issue label_issue_plural label_issue_view_all label_document label_document_plural label_news label_tag
		label_branch label_revision label_revision_plural label_diff label_view_diff label_preview button_filter
		label_project_latest label_filter_plural label_any_issues_in_project label_string label_text label_integer
		label_float label_boolean permission_view_issues permission_view_gantt permission_view_calendar
		permission_view_news permission_view_documents label_encoding general_text_yes general_text_no label_wiki
		label_wiki_page label_index_by_title label_index_by_date label_current_version label_me label_only label_loading
		label_options label_result_plural label_topic_plural label_general label_environment label_optional
		label_required label_hidden label_readonly label_copy_source label_copy_target label_author`},

	{"roundcube", consequence.AuthenticationChange, `login logout password`},
	{"roundcube", consequence.SecurityChange, `settings preferences userpreferences editpreferences edit editcontact editidents editidentity recipientedit
		editresponse editresponses manageidentities manageresponses changesubscription serversettings username email
		phone address addressbook addtoaddressbook resumeediting editasnew`},
	{"roundcube", consequence.PermissionChange, `allow allowremoteresources`},
	{"roundcube", consequence.Publication, `reply replyall replytomessage replytoallmessage replylist send sendmessage sendreceipt newmessage
		writenewmessage autosend contacts`},
	{"roundcube", consequence.Destructive, `delete deletemessage movemessagetotrash cancel discard groupremove groupremoveselected groupdelete searchdelete
		trash deletecontact deletealways deletejunk folderdelete emptytrash`},
	{"roundcube", consequence.FileTransfer, `upload uploadphoto download emlsave attach addattachment import importcontacts importfromfile importmessages
		export exportall exportsel exportvcards attachment attachments forwardattachment importpubkeys`},
	{"roundcube", consequence.Unknown, `sun mon tue wed thu fri sat sunday monday tuesday wednesday thursday friday saturday jan feb mar apr may jun jul
		aug sep oct nov dec long??? today first last previous next zoomin zoomout rotate size date subject from to
		priority lowest low normal high highest all none typehome typework typemobile unicode english westerneuropean
		easterneuropean southeasterneuropean baltic cyrillic arabic greek hebrew turkish nordic thai celtic vietnamese
		japanese korean chinese layout layoutwidescreen layoutdesktop layoutlist list listoptions listcolumns
		listsorting listorder male female expand-all expand-unread collapse-all about version search quicksearch
		advsearch folder folders back more actions select selection sortby sortasc sortdesc darkmode lightmode asc desc
		threads compact unknown unlimited searchresult currentfolder subfolders allfolders body type namex country
		street locality region birthday anniversary website notes department gender manager assistant spouse viewsource
		showtools hidetools always never immediately source destination summary details headers filter filename filesize
		currpage unread isread advanced other section uponelevel previouspage nextpage firstpage lastpage`},

	{"miniflux", consequence.Purchase, `action.subscribe`},
	{"miniflux", consequence.AuthenticationChange, `action.login menu.logout page.login.google_signin page.login.title page.login.webauthn_login
		form.user.label.*password form.user.label.confirmation page.settings.webauthn.register
		page.settings.webauthn.passkeys menu.authentication form.prefs.fieldset.authentication_settings`},
	{"miniflux", consequence.SecurityChange, `action.edit action.update menu.settings menu.preferences menu.edit_* page.settings.title entry.status.title
		form.prefs.fieldset.*_settings form.feed.fieldset.network_settings form.user.label.username
		page.keyboard_shortcuts.go_to_settings`},
	{"miniflux", consequence.PermissionChange, `page.settings.*link_google_account form.feed.label.allow_*`},
	{"miniflux", consequence.Publication, `entry.share.* entry.comments.*`},
	{"miniflux", consequence.Destructive, `action.remove action.remove_feed action.cancel page.keyboard_shortcuts.remove_feed`},
	{"miniflux", consequence.FileTransfer, `action.download action.import menu.export menu.import page.import.title page.entry.attachments
		entry.scraper.label page.keyboard_shortcuts.download_content`},
	{"miniflux", consequence.Unknown, `menu.history menu.search menu.starred menu.unread menu.categories menu.home_page menu.about menu.feeds
		menu.feed_entries menu.title menu.refresh_* menu.show_* menu.mark_* pagination.* page.history.title
		page.unread.title page.starred.title page.search.title page.about.title page.about.version time_elapsed.*
		entry.state.loading entry.status.mark_* search.* form.prefs.select.* page.keyboard_shortcuts.go_to_feed*
		page.keyboard_shortcuts.go_to_next* page.keyboard_shortcuts.go_to_previous*
		page.keyboard_shortcuts.go_to_history page.keyboard_shortcuts.go_to_top_item page.keyboard_shortcuts.subtitle.*
		enclosure_media_controls.speed enclosure_media_controls.speed.faster enclosure_media_controls.speed.slower
		confirm.yes confirm.no skip_to_content page.footer.elevator form.prefs.label.language form.prefs.label.theme
		form.prefs.label.timezone page.categories.* form.category.label.title form.feed.label.title
		form.feed.label.category form.feed.label.description page.offline.title page.feeds.title entry.tags.label
		page.sessions.table.date`},

	{"tryton", consequence.Payment, `account_payment/model:ir.action,name:act_pay_line account_payment/model:ir.action,name:act_payment_form
		account_payment/model:ir.action,name:act_process_payments
		account_payment/model:ir.model.button,string:move_line_pay_button
		account_payment/model:ir.ui.menu,name:menu_payment_form account_payment/model:ir.ui.menu,name:menu_payments
		account_payment/wizard_button:*,next_: account_payment/model:account.payment,name:
		account_payment/field:*,payment: account_payment/field:*,payments: account_payment/field:account.invoice,*pay*:
		account_invoice/model:ir.action,name:act_invoice* account_invoice/model:ir.action,name:act_payment*
		account_invoice/model:ir.action,name:credit account_invoice/model:ir.action,name:wizard_pay
		account_invoice/model:ir.model.button,string:invoice_pay_button
		account_invoice/model:ir.ui.menu,name:menu_*invoice* account_invoice/field:account.invoice*,*payment*:
		*/field:*,invoice: */field:*,invoices: account_invoice/model:account.invoice,name:
		sale/model:ir.action,name:act_invoice_form purchase/model:ir.action,name:act_invoice_form
		account_invoice/field:*,credit*:`},
	{"tryton", consequence.Purchase, `purchase/model:ir.action,name:act_purchase_form purchase/model:ir.action,name:act_purchase_form2
		purchase/model:ir.action,name:report_purchase purchase/model:ir.action,name:wizard_return_purchase
		purchase/model:ir.ui.menu,name:menu_purchase purchase/model:ir.ui.menu,name:menu_purchase_form
		purchase/model:purchase.purchase,name: */field:*,purchase: */field:*,purchases:
		sale/model:ir.action,name:act_sale_form sale/model:ir.action,name:act_sale_form2
		sale/model:ir.action,name:report_sale sale/model:ir.action,name:wizard_return_sale
		sale/model:ir.ui.menu,name:menu_sale sale/model:ir.ui.menu,name:menu_sale_form sale/model:sale.sale,name:
		*/field:*,sale: */field:*,sales:`},
	{"tryton", consequence.Destructive, `*/wizard_button:*,start,end: */wizard_button:*,ask,end: */model:ir.model.button,string:*_cancel_button`},
	{"tryton", consequence.Unknown, `*/field:*,quantity: */field:*,amount: */field:*,date: */field:*,number: */field:*,name: */field:*,description:
		*/field:*,state: */field:*,product: */field:*,unit: */field:*,company: */field:*,country: */field:*,region:
		*/model:ir.action.act_window.domain,name:*_all */model:ir.action.act_window.domain,name:*_draft
		*/model:ir.ui.menu,name:menu_reporting */model:ir.ui.menu,name:menu_product */field:*,day: */field:*,weekday:
		*/field:*,month: */field:*,percentage: */field:*,category: */field:*,warehouse: */field:*,sequence:
		account_payment/model:ir.ui.menu,name:menu_payment_group_form`},
}

// classOf returns the class of a message, and whether it is measured.
func classOf(key string) (consequence.Consequence, bool) {
	set, name, _ := strings.Cut(key, ":")
	for _, r := range rules {
		if r.set != set {
			continue
		}
		for p := range strings.FieldsSeq(r.patterns) {
			if ok, err := path.Match(p, name); err == nil && ok {
				return r.class, true
			}
		}
	}
	return "", false
}
