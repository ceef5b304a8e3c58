import type { ChangeType } from '@mediabucket/client/rules'
import type { webhooks as english } from './en.ts'

/** The texts of the page of webhooks. */
export const webhooks: typeof english = {
  about: 'Sie melden anderen Programmen jede Änderung in diesem Bucket.',
  none: 'Es gibt noch keine Webhooks.',
  loading: 'Wird geladen …',
  failedToLoad: 'Die Webhooks konnten nicht geladen werden.',
  create: 'Webhook erstellen',
  url: 'URL des Empfängers',
  kinds: 'Melden, wenn eine Datei',
  allKinds: 'Jede Änderung',
  kindNames: {
    added: 'hochgeladen wird',
    edited: 'bearbeitet wird',
    trashed: 'in den Papierkorb kommt',
    restored: 'wiederhergestellt wird',
    removed: 'endgültig gelöscht wird',
    expired: 'abläuft',
    previewed: 'ihr Vorschaubild hat',
  } satisfies Readonly<Record<ChangeType, string>>,
  batch: 'Änderungen in einer Lieferung',
  upTo: (count: number) => (count === 1 ? 'Eine' : `Bis zu ${count}`),
  states: {
    off: 'Aus',
    gone: 'Aus: Den Empfänger gibt es nicht mehr',
    failed: 'Aus: drei Tage lang fehlgeschlagen',
  },
  failing: (count: number) =>
    count === 1
      ? 'Die letzte Lieferung ist fehlgeschlagen.'
      : `${count} Versuche nacheinander sind fehlgeschlagen.`,
  nextAttempt: (time: string) => `Nächster Versuch: ${time}.`,
  actions: 'Aktionen',
  test: 'Test senden',
  delivered: (status: number) => `Geliefert. Der Empfänger hat mit ${status} geantwortet.`,
  notDelivered: (reason: string) => `Nicht geliefert. ${reason}`,
  deliveries: 'Lieferungen',
  noDeliveries: 'Es wurde noch nichts geliefert.',
  time: 'Zeit',
  type: 'Art',
  status: 'Status',
  duration: 'Dauer',
  response: 'Antwort',
  repeat: 'Wiederholen',
  switchOn: 'Einschalten',
  switchOff: 'Ausschalten',
  rotate: 'Neuer Schlüssel',
  rotateAbout:
    'Einen Tag lang werden Lieferungen auch mit dem alten Schlüssel unterschrieben, damit der Empfänger inzwischen geändert werden kann.',
  delete: 'Löschen',
  deleteTitle: 'Webhook löschen?',
  deleteAbout: 'Der Empfänger bekommt keine weiteren Änderungen. Das lässt sich nicht rückgängig machen.',
  secret: 'Schlüssel',
  secretTitle: 'Der Schlüssel des Webhooks',
  shownOnce:
    'Der Empfänger prüft damit Unterschriften. Kopiere ihn jetzt. Er wird nicht noch einmal angezeigt.',
  copy: 'Schlüssel kopieren',
}
