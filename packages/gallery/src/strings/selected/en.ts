import { formatCount } from '../locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** The texts of the actions for selected files. */
export const selected = {
  copy: 'Copy links',
  delete: 'Delete',
  clear: 'Clear the selection',
  all: 'Select all',
  selecting: 'Selecting…',
  copyAs: 'Copy links as…',
  form: { plain: 'Plain links', markdown: 'Markdown', html: 'HTML' },
  zip: 'Download as ZIP',
  addLabel: 'Label',
  labelTitle: (count: number) => (count === 1 ? 'Label this file' : `Label ${files(count)}`),
  labelled: (count: number) => `${files(count)} labelled.`,
  missing: (count: number) => `${files(count)} ${count === 1 ? 'does' : 'do'} not exist any more.`,
  zipStarted: (count: number) => `Packing ${files(count)}. The download starts when the archive is complete.`,
  zipFailed: 'The archive could not be created, because a file could not be downloaded. Try again.',
}
