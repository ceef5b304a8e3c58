import { useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { isPrivate } from '../service/urls.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'
import { CopyLinks } from './copy-links.tsx'
import { NamesChoice } from './names-choice.tsx'
import { linkForms } from './sharing.ts'

/** The actions for the selected items. */
export function SelectionTools() {
  const { selection, selectMany, deletion, sharing, tokenInfo, timeline, usage, canDelete, canEdit } =
    useGallery()
  // The list is loaded before the properties of the bucket.
  const [first] = timeline.loaded.value?.items ?? []
  const isPrivateBucket = usage.bucket.value?.private ?? (first !== undefined && isPrivate(first))
  const [labelling, setLabelling] = useState(false)
  const count = selection.count.value
  const ids = () => [...selection.ids.value]
  return (
    <>
      <div class="selection-bar">
        <IconButton icon="close" label={strings.selected.clear} onClick={selectMany.clear} />
        <strong>
          {selectMany.busy.value ? (
            strings.selected.selecting
          ) : (
            <>
              <span class="selected-text">{strings.selection.count(count)}</span>
              <span class="selected-count" aria-hidden="true">
                {formatCount(count)}
              </span>
            </>
          )}
        </strong>
        <Action icon="checkAll" onClick={() => void selectMany.all()}>
          {strings.selected.all}
        </Action>
        <CopyLinks
          labelled
          label={strings.selected.copy}
          ids={ids}
          isPrivate={isPrivateBucket}
          menu="selected-links"
        />
        <button
          type="button"
          class="icon-button"
          popovertarget="link-forms"
          aria-label={strings.selected.copyAs}
          title={strings.selected.copyAs}
        >
          <Icon name="code" />
        </button>
        <div id="link-forms" class="menu" popover="auto">
          {linkForms.map((form) => (
            <button
              key={form}
              type="button"
              class="button quiet"
              popovertarget="link-forms"
              onClick={() => void sharing.copyLinks(ids(), form)}
            >
              {strings.selected.form[form]}
            </button>
          ))}
          <NamesChoice />
        </div>
        <Action icon="download" onClick={() => void sharing.downloadZip(ids(), `${tokenInfo.bucket}.zip`)}>
          {strings.selected.zip}
        </Action>
        {canEdit && (
          <Action icon="tag" onClick={() => setLabelling(true)}>
            {strings.selected.addLabel}
          </Action>
        )}
        {canDelete && (
          <Action class="bad" icon="trash" onClick={() => void deletion.request(ids())}>
            {strings.selected.delete}
          </Action>
        )}
      </div>
      {labelling && <LabelSelected ids={ids()} onDone={() => setLabelling(false)} />}
    </>
  )
}

/** The dialog that labels items, when its code is loaded. */
function LabelSelected(props: { readonly ids: readonly string[]; readonly onDone: () => void }) {
  const dialog = useCode(() => import('./label-dialog.tsx'), 'details', 'labels')
  if (dialog === 'loading') return null
  return dialog === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <dialog.LabelDialog {...props} />
}

interface ActionProps {
  readonly icon: IconName
  readonly class?: string
  readonly onClick: () => void
  readonly children: string
}

function Action({ icon, class: extra = '', onClick, children }: ActionProps) {
  return (
    <button type="button" class={`button quiet ${extra}`} title={children} onClick={onClick}>
      <Icon name={icon} />
      <span>{children}</span>
    </button>
  )
}
