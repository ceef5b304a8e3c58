import { formatCount } from '../locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** The texts of the question before a deletion, and of its progress. */
export const deletion = {
  title: (count: number) => (count === 1 ? 'Delete this file?' : `Delete ${files(count)}?`),
  one: (name: string) => `“${name}” will be deleted for everyone who has its link. This cannot be undone.`,
  many: 'They will be deleted for everyone who has their links. This cannot be undone.',
  confirm: (count: number) => (count === 1 ? 'Delete' : `Delete ${files(count)}`),
  busy: (done: number, count: number) => `Deleting ${formatCount(done + 1)} of ${formatCount(count)}…`,
  moving: (count: number) => `Moving ${files(count)} to the trash…`,
}
