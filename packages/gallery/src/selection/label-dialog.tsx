import { useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { useGallery } from '../gallery-context.ts'
import { LabelFields } from '../labels/label-fields.tsx'
import { isMistake, type LabelMistake, labelsOf } from '../labels/read-labels.ts'
import { createEdits } from '../service/edits.ts'
import { strings } from '../strings.ts'

/** Sets a label of the selected items. */
export function LabelDialog({ ids, onDone }: { ids: readonly string[]; onDone: () => void }) {
  const gallery = useGallery()
  const [mistake, setMistake] = useState<LabelMistake | null>(null)
  function isComplete(fields: FormData): boolean {
    const labels = labelsOf(fields)
    const isEmpty = Object.keys(labels).length === 0
    setMistake(
      isMistake(labels) ? labels : isEmpty ? { row: 0, field: 'key', reason: 'noKey', text: '' } : null,
    )
    return !isMistake(labels) && !isEmpty
  }
  async function save(fields: FormData): Promise<void> {
    const labels = labelsOf(fields)
    if (isMistake(labels)) return
    const { labelled, missing } = await createEdits(gallery).label(ids, labels)
    if (labelled.length > 0) gallery.notices.show(strings.selected.labelled(labelled.length))
    if (missing.length > 0) gallery.notices.show(strings.selected.missing(missing.length), { tone: 'bad' })
    gallery.selection.remove(missing)
    void gallery.timeline.refresh()
    onDone()
  }
  return (
    <ActionDialog
      title={strings.selected.labelTitle(ids.length)}
      label={strings.details.save}
      onClose={onDone}
      check={(fields) => (isComplete(fields) ? null : '')}
      act={save}
    >
      <LabelFields single legend={strings.labels.legend} mistake={mistake} />
    </ActionDialog>
  )
}
