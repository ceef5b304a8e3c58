import { formatCount } from '../locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** The texts of the trash. */
export const trash = {
  about: (days: number) =>
    days === 0
      ? 'Files that are deleted now are not moved to the trash.'
      : `Deleted files stay here for ${days === 1 ? '1 day' : `${formatCount(days)} days`}.`,
  all: 'Select all shown',
  list: 'Deleted files',
  loading: 'Loading the trash…',
  failedToLoad: 'The trash could not be loaded',
  none: 'The trash is empty',
  deletedAt: (time: string) => `Deleted ${time}`,
  left: (days: number) => (days === 1 ? '1 day left' : `${formatCount(days)} days left`),
  more: 'Show more',
  restore: 'Restore',
  delete: 'Delete permanently',
  empty: 'Empty the trash',
  confirmDelete: (count: number) =>
    count === 1 ? 'Delete this file permanently?' : `Delete ${files(count)} permanently?`,
  confirmEmpty: 'Delete all files in the trash?',
  forGood: 'This cannot be undone.',
  deleted: (count: number) => `${files(count)} deleted permanently.`,
  emptied: 'The trash is empty now.',
}
