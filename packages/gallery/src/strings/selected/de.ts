import { formatCount } from '../locale.ts'
import type { selected as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

/** The texts of the actions for selected files. */
export const selected: typeof english = {
  copy: 'Links kopieren',
  delete: 'Löschen',
  clear: 'Auswahl aufheben',
  all: 'Alle auswählen',
  selecting: 'Auswahl läuft…',
  copyAs: 'Links kopieren als…',
  form: { plain: 'Einfache Links', markdown: 'Markdown', html: 'HTML' },
  zip: 'Als ZIP herunterladen',
  addLabel: 'Label setzen',
  labelTitle: (count: number) =>
    count === 1 ? 'Label dieser Datei setzen' : `Label setzen: ${files(count)}`,
  labelled: (count: number) => `Label gesetzt: ${files(count)}.`,
  missing: (count: number) => `${files(count)} ${count === 1 ? 'existiert' : 'existieren'} nicht mehr.`,
  zipStarted: (count: number) =>
    `${files(count)} werden gepackt. Der Download beginnt, wenn das Archiv vollständig ist.`,
  zipFailed:
    'Das Archiv konnte nicht erstellt werden, weil eine Datei nicht geladen werden konnte. Versuche es erneut.',
}
