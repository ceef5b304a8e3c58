import { formatCount } from '../locale.ts'

/** The texts of fields for labels, and why they are refused. */
export const labels = {
  legend: 'Labels',
  key: 'Key',
  value: 'Value',
  keyOf: (row: number) => `Key of label ${formatCount(row)}`,
  valueOf: (row: number) => `Value of label ${formatCount(row)}`,
  add: 'Add a label',
  remove: (label: string) => `Remove the label ${label}`,
  noKey: (value: string) =>
    value === '' ? 'Enter the key of the label.' : `Enter a key for the value “${value}”.`,
  badKey: (key: string) =>
    `“${key}” cannot be the key of a label. A key has up to 40 letters a to z, digits, _ . and -, and no spaces.`,
  badValue: (key: string) =>
    `The value of the label “${key}” is too long or has control characters. A value has up to 200 characters.`,
  twice: (key: string) => `Two labels have the key “${key}”. Remove one of them.`,
  tooMany: (key: string) => `A file has up to 16 labels. Remove “${key}” or another one.`,
}
