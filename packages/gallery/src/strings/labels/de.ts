import { formatCount } from '../locale.ts'
import type { labels as english } from './en.ts'

/** The texts of fields for labels, and why they are refused. */
export const labels: typeof english = {
  legend: 'Labels',
  key: 'Schlüssel',
  value: 'Wert',
  keyOf: (row) => `Schlüssel von Label ${formatCount(row)}`,
  valueOf: (row) => `Wert von Label ${formatCount(row)}`,
  add: 'Label hinzufügen',
  remove: (label) => `Label ${label} entfernen`,
  noKey: (value) =>
    value === '' ? 'Gib den Schlüssel des Labels ein.' : `Gib einen Schlüssel für den Wert „${value}“ ein.`,
  badKey: (key) =>
    `„${key}“ kann nicht der Schlüssel eines Labels sein. Ein Schlüssel hat bis zu 40 Buchstaben a bis z, Ziffern, _ . und -, und keine Leerzeichen.`,
  badValue: (key) =>
    `Der Wert des Labels „${key}“ ist zu lang oder hat Steuerzeichen. Ein Wert hat bis zu 200 Zeichen.`,
  twice: (key) => `Zwei Labels haben den Schlüssel „${key}“. Entferne eines davon.`,
  tooMany: (key) => `Eine Datei hat bis zu 16 Labels. Entferne „${key}“ oder ein anderes.`,
}
