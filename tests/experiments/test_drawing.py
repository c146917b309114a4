"""How pictures are drawn and saved."""

import numpy as np

from experiments import drawing


def test_equal_pictures_are_equal_files(tmp_path):
    def draw():
        figure = drawing.new_figure(2, 2)
        figure.subplots().plot([1, 2], [3, 4])
        return figure

    first = drawing.save_picture(draw(), "x", tmp_path / "one")
    second = drawing.save_picture(draw(), "x", tmp_path / "two")
    assert [path.name for path in first] == ["x.png", "x.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_seeds_are_drawn_with_their_mean_over_those_that_have_a_value():
    axes = drawing.new_figure(2, 2).subplots()
    drawing.draw_seeds(axes, np.array([10, 20]), np.array([[1.0, 2.0], [3.0, np.nan]]), "red", "two seeds")
    one, two, mean = (line.get_ydata() for line in axes.lines)
    np.testing.assert_array_equal(one, [1, 2])
    np.testing.assert_array_equal(two, [3, np.nan])
    np.testing.assert_array_equal(mean, [2, 2])
    assert axes.lines[-1].get_label() == "two seeds"


def test_a_number_that_grows_ends_where_the_run_does():
    axes = drawing.new_figure(2, 2).subplots()
    drawing.draw_steps(axes, [3, 8], 20, color="red")
    assert list(axes.lines[0].get_xdata()) == [3, 8, 20]
    assert list(axes.lines[0].get_ydata()) == [1, 2, 2]
