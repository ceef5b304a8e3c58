import { ActionDialog } from '../components/action-dialog.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** Sets a label of the selected items. */
export function LabelDialog({ ids, onDone }: { ids: readonly string[]; onDone: () => void }) {
  const { edits, notices, timeline } = useGallery()
  async function save(fields: FormData): Promise<void> {
    const textOf = (name: string) => `${fields.get(name) ?? ''}`.trim()
    await edits.label(ids, textOf('key'), textOf('value'))
    notices.show(strings.selection.labelled(ids.length))
    void timeline.refresh()
    onDone()
  }
  return (
    <ActionDialog
      title={strings.selection.labelTitle(ids.length)}
      label={strings.details.save}
      onClose={onDone}
      act={save}
    >
      <div class="text-field">
        <label for="label-key">{strings.selection.labelKey}</label>
        <input
          id="label-key"
          name="key"
          type="text"
          required
          autocomplete="off"
          autocapitalize="none"
          pattern="[a-z0-9_.\-]{1,40}"
          title={strings.selection.labelKeyHint}
          aria-describedby="label-key-hint"
        />
        <p id="label-key-hint" class="small muted">
          {strings.selection.labelKeyHint}
        </p>
      </div>
      <div class="text-field">
        <label for="label-value">{strings.selection.labelValue}</label>
        <input id="label-value" name="value" type="text" autocomplete="off" maxLength={200} />
      </div>
    </ActionDialog>
  )
}
