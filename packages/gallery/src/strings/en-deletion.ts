import { formatCount } from '../format/count.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** Texts of deletions. */
export const deletion = {
  title: (count: number) => (count === 1 ? 'Delete this file?' : `Delete ${files(count)}?`),
  one: (name: string) => `“${name}” will be deleted for everyone who has its link. This cannot be undone.`,
  many: 'They will be deleted for everyone who has their links. This cannot be undone.',
  confirm: (count: number) => (count === 1 ? 'Delete' : `Delete ${files(count)}`),
  busy: (done: number, count: number) => `Deleting ${formatCount(done + 1)} of ${formatCount(count)}…`,
  done: (count: number) => `${files(count)} deleted.`,
  onOtherPages: (count: number) =>
    `${count === 1 ? '1 of them is' : `${formatCount(count)} of them are`} on other pages.`,
  failed: (count: number, reason: string) => `${files(count)} could not be deleted. ${reason}`,
  trashed: (count: number) => `${files(count)} moved to the trash.`,
  moving: (count: number) => `Moving ${files(count)} to the trash…`,
  undo: 'Undo',
}

/** Texts of the trash. */
export const trash = {
  title: 'Trash',
  titleOf: (bucket: string) => `${bucket}, trash`,
  about: (days: number) =>
    days === 0
      ? 'Files that are deleted now are not moved to the trash.'
      : `Deleted files stay here for ${days === 1 ? '1 day' : `${formatCount(days)} days`}.`,
  back: 'Back to the files',
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
  restored: (count: number) => `${files(count)} restored.`,
  deleted: (count: number) => `${files(count)} deleted permanently.`,
  emptied: 'The trash is empty now.',
  missing: (count: number) => `${files(count)} ${count === 1 ? 'is' : 'are'} no longer in the trash.`,
  failed: (reason: string) => `This did not succeed. ${reason}`,
}
